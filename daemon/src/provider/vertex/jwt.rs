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
    use super::*;
    use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    /// What `base64` wrote, read again.
    fn bytes_of(text: &str) -> Vec<u8> {
        let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut bits = text.chars().flat_map(|c| {
            let digit = digits.find(c).unwrap();
            (0..6).rev().map(move |n| digit >> n & 1 == 1)
        });
        let mut bytes = vec![0_u8; text.len() * 3 / 4];
        for byte in &mut bytes {
            *byte = (0..8).fold(0, |byte, _| byte << 1 | u8::from(bits.next().unwrap()));
        }
        bytes
    }

    #[test]
    fn request_is_signed_by_the_services_key_and_says_what_it_is_for() {
        let pem = include_str!("../../../../tests/fixtures/providers/vertex/key.pem");
        let signer = Signer::new(
            &pem.into(),
            Some("k1".to_owned()),
            "me@example.org".to_owned(),
        );
        let signer = signer.unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(1_000);
        let request = signer.sign("https://example.org/token", at).unwrap();
        let (text, signature) = request.rsplit_once('.').unwrap();
        let public = signer.key.public_key().as_ref();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
        public
            .verify(text.as_bytes(), &bytes_of(signature))
            .unwrap();
        let (head, claims) = text.split_once('.').unwrap();
        let value = |part: &str| serde_json::from_slice::<Value>(&bytes_of(part)).unwrap();
        assert_eq!(
            value(head),
            json!({"alg": "RS256", "typ": "JWT", "kid": "k1"})
        );
        let expected = json!({"iss": "me@example.org", "scope": SCOPE,
            "aud": "https://example.org/token", "iat": 1_000, "exp": 4_600});
        assert_eq!(value(claims), expected);
    }

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
            assert_eq!(base64(bytes), expected);
            assert_eq!(bytes_of(expected), bytes);
        }
    }
}
