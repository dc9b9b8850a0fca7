package permissions

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// fuzzSeedVar and fuzzSetsVar have TestPermissionFuzz make other sets, and more: see make fuzz.
const (
	fuzzSeedVar = "GAOL_TEST_FUZZ_SEED"
	fuzzSetsVar = "GAOL_TEST_FUZZ_SETS"
)

// fuzzRounds is how many runs try everything in one runtime. Each has its own files to move
// and remove.
const fuzzRounds = 3

// fuzzWorld is what each runtime of the test starts with.
type fuzzWorld struct {
	copied map[string]fs.FS
	mounts []runtime.Mount // of sources that no test changes
}

func newFuzzWorld(t testing.TB) fuzzWorld {
	w := fuzzWorld{copied: map[string]fs.FS{}}
	for _, a := range triedAreas {
		switch {
		case !a.mounted:
			w.copied[a.at] = os.DirFS(fuzzTree(t, a))
		case a.access != runtime.ReadWrite:
			w.mounts = append(w.mounts, runtime.Mount{Source: fuzzTree(t, a), Target: a.at, Access: a.access})
		}
	}
	return w
}

func (w fuzzWorld) options(t testing.TB, p policy.Permissions) runtime.Options {
	mounts := slices.Clone(w.mounts)
	for _, a := range triedAreas {
		if a.mounted && a.access == runtime.ReadWrite {
			mounts = append(mounts, runtime.Mount{Source: fuzzTree(t, a), Target: a.at, Access: a.access})
		}
	}
	env := map[string]string{}
	for _, name := range fuzzEnv {
		env[name] = "x"
	}
	return harness.Options(runtime.Options{Folders: w.copied, Mounts: mounts, Env: env, Permissions: p})
}

// attempted returns the codes of all tries of a round.
func attempted(t testing.TB, rt *runtime.NodeRuntime, l tryList, other int, p policy.Permissions) ([]string, error) {
	t.Helper()
	res, err := rt.Run(t.Context(), source(t, "tries.mjs"), runtime.RunOptions{Permissions: p, Stdin: strings.NewReader(text(t, map[string]any{"tries": l, "other": other}))})
	if err != nil {
		return nil, err
	}
	var codes []string
	if err := res.Decode(&codes); err != nil || len(codes) != len(l) {
		t.Fatalf("%v, %d of %d: cause %q, exit code %d: %s", err, len(codes), len(l), res.Cause, res.ExitCode, res.Stderr)
	}
	return codes, nil
}

// bystander is another run's process.
func bystander(t testing.TB, rt *runtime.NodeRuntime) *runtime.Process {
	t.Helper()
	p, err := rt.SpawnCode(t.Context(), `setInterval(() => {}, 1e6)`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The kernel allows a guest exactly the permitted operations. For random permissions that a
// runtime accepts, every action is tried at every place.
func TestPermissionFuzz(t *testing.T) {
	tier.Soak(t)
	seed, sets := uint64(1), harness.Fewer(20, 3)
	if text := os.Getenv(fuzzSeedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := strconv.Atoi(os.Getenv(fuzzSetsVar)); err == nil {
		sets = n
	}
	t.Logf("%s=%d", fuzzSeedVar, seed)
	w := newFuzzWorld(t)
	free := harness.CreateExact(t, w.options(t, policy.Open()))
	other := bystander(t, free)
	codes, err := attempted(t, free, allTries(0), other.PID(), policy.Permissions{})
	if err != nil {
		t.Fatal(err)
	}
	f := fuzz{w: w, free: codes}
	for i := range sets {
		f.try(t, setMaker{rand.New(rand.NewPCG(seed, uint64(i)))}, fmt.Sprintf("set %d", i))
	}
	t.Logf("%d of %d sets accepted, %d of %d for runs", f.made, sets, f.narrowed, f.made*(fuzzRounds-1))
	if f.made*2 < sets || f.narrowed*5 < f.made {
		t.Error("too few: this test proves little")
	}
}

// fuzz counts.
type fuzz struct {
	w              fuzzWorld
	free           []string
	made, narrowed int
}

func (f *fuzz) refused(t *testing.T, what string, p policy.Permissions, err error) {
	t.Helper()
	if _, ok := errors.AsType[*policy.RuleError](err); !ok && !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("%s: %v\n%s", what, err, text(t, p))
	}
	if testing.Verbose() {
		t.Logf("%s: %v", what, err)
	}
}
