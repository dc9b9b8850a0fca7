package runtime

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func TestReadValue(t *testing.T) {
	const limit = 32
	for _, tc := range []struct {
		name string
		in   []byte
		want string
		err  error
	}{
		{"value", frame(`{"a":1}`), `{"a":1}`, nil},
		{"as long as allowed", frame(`"` + strings.Repeat("x", limit-2) + `"`), `"` + strings.Repeat("x", limit-2) + `"`, nil},
		{"end", nil, "", io.EOF},
		{"cut head", []byte{0, 0}, "", io.ErrUnexpectedEOF},
		{"cut text", frame(`{"a":1}`)[:6], "", io.EOF},
		{"empty", frame(""), "", errFrame},
		{"too long", frame(strings.Repeat(" ", limit) + "1"), "", errFrame},
		{"length of 4 GiB", []byte{0xff, 0xff, 0xff, 0xff}, "", errFrame},
		{"no JSON", frame(`{"a":`), "", errFrame},
		{"two values", frame(`1 2`), "", errFrame},
		{"no UTF-8", frame("\"\xff\""), "", errFrame},
		{"NaN", frame(`NaN`), "", errFrame},
	} {
		got, err := readValue(bytes.NewReader(tc.in), limit)
		if string(got) != tc.want || err != tc.err {
			t.Errorf("%s: %q, %v; want %q, %v", tc.name, got, err, tc.want, tc.err)
		}
	}
}

// What a hostile guest writes to its value pipe never gets out as something that
// is no JSON, and is never longer than the limit.
func FuzzReadValue(f *testing.F) {
	f.Add(frame(`{"a":[1,"x",null]}`))
	f.Add([]byte{0, 0, 0, 200, 1, 2, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		r := bytes.NewReader(in)
		for {
			value, err := readValue(r, limit)
			if err != nil {
				return
			}
			if len(value) > limit || !json.Valid(value) {
				t.Fatalf("let %q through", value)
			}
		}
	})
}
