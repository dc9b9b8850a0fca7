package runtime

import (
	"embed"
	"os"
	"testing"
	"time"

	"gaol/test/tier"
)

//go:embed internal/guest/*.mjs
var guestTests embed.FS

// The tests of the guest's JavaScript run in a runtime, with the Node of the image.
func TestPrelude(t *testing.T) { guestTest(t, "prelude") }

func TestPreludeWire(t *testing.T) { guestTest(t, "wire") }

func TestPreludeCalls(t *testing.T) {
	tier.Soak(t)
	guestTest(t, "calls")
}

func TestPreludeValues(t *testing.T) { guestTest(t, "values") }

func TestPreludeContext(t *testing.T) { guestTest(t, "context") }

func guestTest(t *testing.T, name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a runtime; by hand: node --test runtime/internal/guest")
	}
	files := map[string][]byte{}
	for to, from := range map[string]string{"fakehost.mjs": "fakehost.mjs", "random.mjs": "random.mjs", "test.mjs": name + ".test.mjs"} {
		text, err := guestTests.ReadFile("internal/guest/" + from)
		if err != nil {
			t.Fatal(err)
		}
		files["/workspace/"+to] = text
	}
	var err error
	if files["/workspace/frames.json"], err = os.ReadFile("../internal/wire/testdata/frames.json"); err != nil {
		t.Fatal(err)
	}
	rt, err := Create(t.Context(), Options{Limits: Limits{Memory: 1 << 30, CPUs: 2}, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	res, err := rt.Exec(t.Context(), `import './test.mjs'`, RunOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitCode != 0 {
		t.Errorf("exit code %d, cause %q\n%s%s", res.ExitCode, res.Cause, res.Stdout, res.Stderr)
	}
	t.Logf("%s", res.Stdout)
}
