package harness

import (
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"gaol/runtime/snippets"
)

// DecodeLink returns the snippet of a fragment, without "#", of the form that [snippets.EncodeLink] documents.
func DecodeLink(t testing.TB, fragment string) (in snippets.Input) {
	t.Helper()
	name, packed, _ := strings.Cut(fragment, "=")
	text, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.RawURLEncoding.Strict(), strings.NewReader(packed))))
	switch {
	case err != nil:
	case name == "src":
		in.Source = string(text)
	default:
		err = json.Unmarshal(text, &in.Files)
	}
	if err != nil {
		t.Errorf("the fragment %q: %v", fragment, err)
	}
	return in
}
