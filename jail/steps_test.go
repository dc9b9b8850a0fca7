package jail

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/seccomp"
)

// The error names the step that failed, and nothing is left.
func TestFailedSteps(t *testing.T) {
	making, entering := stepsOf(t, newJail(t))
	// The first instruction of the filter, which does nothing, has the number of the step that
	// must fail.
	const piece, ofEntering = "if (do_step(", 1000
	patchEntryProgram(t, piece, "if (filter[0].k == current + (list[3].op == STEP_NAMESPACES ? 1000 : 0)) fail(EDOM); else "+piece)
	for base, steps := range map[int][]enter.Step{0: making, ofEntering: entering} {
		for i, want := range steps {
			err := createAndStart(t, uint32(base+i+1))
			step, ok := errors.AsType[*StepError](err)
			if !ok || step.Err != unix.EDOM || step.Step != want.Name {
				t.Errorf("%v, want a failed %s", err, want.Name)
			} else if step.Target != want.Target && step.Step != "cgroup" { // another jail's
				t.Errorf("%v, want a failed %s %s", err, want.Name, want.Target)
			}
		}
	}
	if err := createAndStart(t, ofEntering-1); err != nil {
		t.Errorf("no step is to fail: %v", err)
	}
	if left := zombies(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// stepsOf returns the steps that create a jail and those that enter it, as the entry program
// gets them.
func stepsOf(t *testing.T, j *Jail) (making, entering []enter.Step) {
	t.Helper()
	group, err := cgroup.Open(j.identity.Cgroup())
	if err != nil {
		t.Fatal(err)
	}
	top, err := openCgroups(group.Dirs())
	if err != nil {
		t.Fatal(err)
	}
	defer top.close()
	in := top.with(j.shared)
	return j.createSteps(in, nil), j.enterSteps(&Command{Program: Program{Args: []string{"sh"}, Dir: "/work", Terminal: true}, OpenFiles: 64, Filter: j.spec.Filter}, in)
}

// createAndStart creates a jail and starts a process in it. Its filter contains a number and
// allows every call.
func createAndStart(t *testing.T, number uint32) error {
	spec := testSpec(t)
	noFilter(&spec)
	load := binary.NativeEndian.AppendUint32([]byte{unix.BPF_LD | unix.BPF_IMM, 0, 0, 0}, number)
	spec.Filter = &seccomp.Filter{Program: append(load, spec.Filter.Program...)}
	j, err := Create(t.Context(), spec)
	if err != nil {
		return err
	}
	term, err := j.OpenTerminal(TerminalSize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	_, err = j.Start(t.Context(), Command{
		Program: Program{
			Args: []string{"sh"}, Dir: "/work", Env: []string{"PATH=/bin"}, Files: []*os.File{term.Guest, term.Guest, term.Guest}, Terminal: true,
		},
		OpenFiles: 64,
	})
	return errors.Join(err, j.Close())
}

// The entry program runs with the host's rights, so only root may be able to change it.
func TestEntryProgramMustBelongToRoot(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"another's": func(path string) error { return os.Chown(path, 1000, 0) },
		"for all":   func(path string) error { return os.Chmod(path, 0o777) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+"-"), os.Symlink("enter-", path))
		},
		"below a link": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+"-"), os.Symlink("gaol-", dir))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o711)) },
		"missing":  os.Remove,
	} {
		spec := testSpec(t)
		image := filepath.Join(t.TempDir(), "image")
		if err := os.CopyFS(image, os.DirFS(spec.Image)); err != nil {
			t.Fatal(err)
		}
		spec.Image = image
		path := filepath.Join(image, enter.Path)
		if err := errors.Join(os.Chmod(path, 0o711), spoil(path)); err != nil {
			t.Fatal(err)
		}
		j, err := Create(t.Context(), spec)
		if step, ok := errors.AsType[*StepError](err); !ok || step.Step != "open" {
			t.Errorf("%s: %v, want a failed open", name, err)
		}
		if err == nil {
			j.Close()
		}
	}
}

// The error reports that the image was made by another version.
func TestEntryProgramOfOtherVersion(t *testing.T) {
	patchEntryProgram(t, `#define VERSION "`, `#define VERSION "not `)
	if err := createAndStart(t, 0); !errors.Is(err, enter.ErrOtherVersion) {
		t.Errorf("%v, want %v", err, enter.ErrOtherVersion)
	}
}

func names(steps []enter.Step) []string {
	var list []string
	for _, s := range steps {
		list = append(list, s.Name)
	}
	return list
}

func lastIndex(list []string, name string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == name {
			return i
		}
	}
	return -1
}

// The steps are in the order that steps.go gives reasons for.
func TestStepOrder(t *testing.T) {
	making, entering := stepsOf(t, newJail(t))
	for _, tc := range []struct {
		list          string
		before, after string
	}{
		{"making", "cgroup", "cgroup namespace"}, {"making", "cgroup namespace", "clone"}, {"making", "clone", "await"}, {"making", "mount", "pivot"},
		{"making", "hide", "pivot"}, {"making", "capabilities", "death signal"}, {"making", "user", "death signal"},
		{"entering", "clone", "cgroup"}, {"entering", "user", "chdir"}, {"entering", "session", "terminal"}, {"entering", "descriptors", "terminal"},
		{"both", "descriptors", "chdir"}, {"both", "capabilities", "chdir"}, {"both", "limit", "no_new_privs"},
		{"both", "no_new_privs", "seccomp"}, {"both", "seccomp", "exec"},
	} {
		for name, list := range map[string][]string{"making": names(making), "entering": names(entering)} {
			if tc.list != name && tc.list != "both" {
				continue
			}
			last, first := lastIndex(list, tc.before), slices.Index(list, tc.after)
			if noneJoined := !slices.Contains(list, "cgroup"); noneJoined && (tc.before == "cgroup" || tc.after == "cgroup") {
				continue // on v2 processes are started in them
			}
			if last < 0 || first < last {
				t.Errorf("%s: %s is not before %s: %q", name, tc.before, tc.after, list)
			}
		}
	}
}
