//! A service's signed request for a token. Must never show its key.

use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long the request itself is good.
const GOOD: Duration = Duration::from_secs(3_600);

pub(super) struct Signer {
    key: RsaKeyPair,
    key_id: Option<String>,
    email: String,
}

impl Signer {
    pub(super) fn new(
        pem: &SecretString,
        key_id: Option<String>,
        email: String,
    ) -> Result<Self, String> {
        let bad = || "its private key cannot be read".to_owned();
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose_secret().as_bytes());
        let der = der.map_err(|_| bad())?;
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| bad())?;
        Ok(Self { key, key_id, email })
    }

    /// The request for `audience`, good from `now` on.
    pub(super) fn sign(&self, audience: &str, now: SystemTime) -> Result<String, String> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let head = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let claims = json!({"iss": self.email, "scope": SCOPE, "aud": audience,
            "iat": now.as_secs(), "exp": (now + GOOD).as_secs()});
        let part = |value: &Value| base64(value.to_string().as_bytes());
        let text = format!("{}.{}", part(&head), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let signed = self.key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            text.as_bytes(),
            &mut signature,
        );
        signed.map_err(|_| "cannot sign a request for a token".to_owned())?;
        Ok(format!("{text}.{}", base64(&signature)))
    }
}

/// In the alphabet for URLs, without padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=group.len() {
            text.push(DIGITS[(bits >> (18 - 6 * n) & 63) as usize] as char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_urls() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
        ] {
            assert_eq!(super::base64(bytes), expected);
        }
    }
}
