//! A raw keep-alive HTTP client: what a round trip costs without any product in between. Loopback only.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that is used again and again.
#[derive(Debug)]
pub struct RawHttp {
    reader: BufReader<TcpStream>,
    host: SocketAddr,
}

impl RawHttp {
    pub fn connect(host: SocketAddr) -> io::Result<Self> {
        assert!(host.ip().is_loopback(), "loopback only");
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self {
            reader: BufReader::new(stream),
            host,
        })
    }

    /// Posts JSON and reads the whole answer; returns its body.
    pub fn post(&mut self, path: &str, json: &str) -> io::Result<Vec<u8>> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.host,
            json.len()
        );
        self.reader
            .get_mut()
            .write_all(format!("{head}{json}").as_bytes())?;
        let chunked = self.read_head()?;
        if chunked {
            self.read_chunks()
        } else {
            Err(io::Error::other("the answer is not chunked"))
        }
    }

    fn read_head(&mut self) -> io::Result<bool> {
        let mut chunked = false;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(chunked);
            }
            chunked |= line.eq_ignore_ascii_case("transfer-encoding: chunked");
        }
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + size, 0);
            self.reader.read_exact(&mut body[start..])?;
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}
