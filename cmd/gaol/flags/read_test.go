package flags

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	if text, err := Read(t.Context(), strings.NewReader("four"), "x", 4); string(text) != "four" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := Read(t.Context(), strings.NewReader("five!"), "x", 4); err == nil || err.Error() != "read x: more than 4" {
		t.Errorf("%v", err)
	}
}

// A canceled context ends a Read that never returns.
func TestReadCanceled(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Read(ctx, r, "x", 4); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestPolicyErrorNamesTheText(t *testing.T) {
	_, err := Policy([]byte(`{"files": 1}`), "a.json")
	if err == nil || !strings.HasPrefix(err.Error(), "a.json: permissions: files: ") {
		t.Errorf("%v", err)
	}
}

func TestGlobals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.json")
	for text, ok := range map[string]bool{`{"a": 1}`: true, `{}`: true, `null`: false, `[1]`: false, `{`: false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if globals, err := Globals(t.Context(), path); (err == nil) != ok || (globals != nil) != ok {
			t.Errorf("%s: %v, %v", text, globals, err)
		}
	}
	if globals, err := Globals(t.Context(), ""); globals != nil || err != nil {
		t.Errorf("%v, %v", globals, err)
	}
}
