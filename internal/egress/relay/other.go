package relay

import (
	"bytes"
	"time"

	"gaol/internal/lazyregexp"
)

// Protocols that are neither TLS nor HTTP name no host that is checked. So bytes pass as one of
// them only where no server takes them for a request:
//
//   - the server has sent something first, or has answered, and not by HTTP;
//   - they are known by their first bytes, which end a line before the server answers;
//   - they have no end of a line. Most binary protocols are among these.

// greetTimeout bounds how long a server takes to speak first if the guest has not waited for it, as
// clients of SSH and rsync do not.
const greetTimeout = 5 * time.Second

// redis is a command in RESP.
var redis = lazyregexp.New(`^\*[0-9]{1,4}\r\n\$[0-9]{1,4}\r\n`)

// isKnown reports whether bytes begin a protocol in which the guest speaks first, and often ends
// a line: Redis, MongoDB and MQTT.
func isKnown(b []byte) bool {
	return redis().Match(b) || isMongo(b) || isMQTT(b)
}

// isMongo recognizes the header of a message: a length, two ids of which the second is zero, and
// OP_MSG, OP_COMPRESSED or OP_QUERY.
func isMongo(b []byte) bool {
	if len(b) < 16 || !bytes.Equal(b[8:12], make([]byte, 4)) {
		return false
	}
	op := string(b[12:16])
	return op == "\xdd\x07\x00\x00" || op == "\xdc\x07\x00\x00" || op == "\xd4\x07\x00\x00"
}

// isMQTT recognizes CONNECT, after a length of one to four bytes.
func isMQTT(b []byte) bool {
	if len(b) == 0 || b[0] != 0x10 {
		return false
	}
	start := b[:min(len(b), 13)]
	return bytes.Contains(start, []byte("\x00\x04MQTT")) || bytes.Contains(start, []byte("\x00\x06MQIsdp"))
}

// isText reports whether bytes have the end of a line, or name a host as HTTP does: some servers
// end lines by other characters.
func isText(b []byte) bool {
	return bytes.ContainsAny(b, "\r\n") || bytes.Contains(bytes.ToLower(b), []byte("host:"))
}

// mayBeResponse reports whether the first bytes of a server may begin a response of HTTP. Some
// servers send one without a request when a time is over.
func mayBeResponse(b []byte) bool {
	start := []byte("HTTP/")
	n := min(len(b), len(start))
	return bytes.EqualFold(b[:n], start[:n])
}
