package resultjson

// Piece is a part of one stream. Neighboring pieces are of different streams.
type Piece struct {
	Stream string `json:"stream"` // stdout or stderr
	Text   Text   `json:"text"`
}

// Text is bytes that JSON has as a string, not in base64: a string could not grow without
// a copy. Invalid UTF-8 becomes U+FFFD.
type Text []byte

// MarshalText implements [encoding.TextMarshaler].
func (t Text) MarshalText() ([]byte, error) { return t, nil }
