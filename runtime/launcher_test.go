package runtime

import (
	"errors"
	"slices"
	"testing"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime/internal/enforce"
	"gaol/runtime/internal/guest"
)

func TestLauncherCheck(t *testing.T) {
	for _, tc := range []struct {
		launcher Launcher
		node     string
		ok       bool
	}{
		{LauncherExec, "26.10.0", true},
		{LauncherZygote, "22.22.0", true},
		{LauncherZygote, "24.21.0", true},
		{LauncherZygote, "26.10.0", true},
		{LauncherZygote, "20.19.0", false},
		{LauncherZygote, "28.0.0", false},
		{LauncherZygote, "", false},
	} {
		err := tc.launcher.Supports(&rootfs.Image{Node: tc.node})
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v with Node %q: %v", tc.launcher, tc.node, err)
		}
	}
}

func TestLauncherCheckImported(t *testing.T) {
	forkable := rootfs.Imported{Libc: "glibc", Zygote: true, TrustNode: true}
	with := func(change func(*rootfs.Imported)) *rootfs.Image {
		m := forkable
		change(&m)
		return &rootfs.Image{Node: "24.21.0", Imported: &m}
	}
	for name, tc := range map[string]struct {
		image *rootfs.Image
		ok    bool
	}{
		"trusted":      {with(func(*rootfs.Imported) {}), true},
		"not trusted":  {with(func(m *rootfs.Imported) { m.TrustNode = false }), false},
		"musl":         {with(func(m *rootfs.Imported) { m.Libc = "musl" }), false},
		"static":       {with(func(m *rootfs.Imported) { m.Libc = "static" }), false},
		"old glibc":    {with(func(m *rootfs.Imported) { m.Zygote = false }), false},
		"no Node":      {&rootfs.Image{Imported: &forkable}, false},
		"other Node":   {&rootfs.Image{Node: "20.1.0", Imported: &forkable}, false},
		"unknown Node": {&rootfs.Image{Node: "unknown", Imported: &forkable}, false},
	} {
		err := LauncherZygote.Supports(tc.image)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if err := LauncherExec.Supports(tc.image); err != nil {
			t.Errorf("%s: with LauncherExec: %v", name, err)
		}
	}
}

// An imported image sets PATH, unless the caller does.
func TestForImage(t *testing.T) {
	asks := func(path string) *rootfs.Image {
		return &rootfs.Image{Node: "24.21.0", Imported: &rootfs.Imported{Config: rootfs.ImportedConfig{Env: []string{"LD_PRELOAD=/x", "PATH=" + path}}}}
	}
	usual := baseEnv()["PATH"]
	for name, tc := range map[string]struct {
		env   map[string]string
		image *rootfs.Image
		want  string
	}{
		"built":    {nil, &rootfs.Image{Node: "24.21.0"}, usual},
		"imported": {nil, asks("/opt/app/bin:/bin"), "/opt/app/bin:/bin"},
		"relative": {nil, asks("bin:/bin"), usual},
		"dots":     {nil, asks("/a/../bin"), usual},
		"empty":    {nil, asks("/bin::/usr/bin"), usual},
		"caller's": {map[string]string{"PATH": "/mine"}, asks("/bin"), "/mine"},
	} {
		o := Options{Env: tc.env}
		s, err := o.resolve()
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.forImage(tc.image)
		if err != nil {
			t.Fatal(err)
		}
		env := got.env
		if env["PATH"] != tc.want || env["LD_PRELOAD"] != "" {
			t.Errorf("%s: %v", name, env)
		}
		if tc.env == nil && s.env["PATH"] != usual {
			t.Errorf("%s: the settings were changed: PATH %s", name, s.env["PATH"])
		}
	}
}

// Commands run in every image, programs only in images with a suitable Node.
func TestNeedNode(t *testing.T) {
	for node, ok := range map[string]bool{"": false, "20.19.0": false, "22.0.0": true, "24.21.0": true, "unknown": true} {
		s, err := Options{}.resolve()
		if err == nil {
			s, err = s.forImage(&rootfs.Image{Node: node, Imported: &rootfs.Imported{}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lowered(t, s, nodeCode("1"), RunOptions{}); (err == nil) != ok || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("Node %q: %v", node, err)
		}
		if _, err := lowered(t, s, imageProgram("sh", nil), RunOptions{}); err != nil {
			t.Errorf("a command in an image with Node %q: %v", node, err)
		}
	}
}

// The files that Node needs are granted at the paths where the image has them.
func TestImagePlaces(t *testing.T) {
	o := Options{Permissions: policy.Strict()}
	s, err := o.resolve()
	if err != nil {
		t.Fatal(err)
	}
	m := &rootfs.Imported{NodePath: "/opt/node/bin/node", Libraries: []string{"/lib"}}
	if s, err = s.forImage(&rootfs.Image{Node: "24.21.0", Imported: m}); err != nil {
		t.Fatal(err)
	}
	granted := map[string]bool{}
	for _, g := range s.plan.Grants {
		granted[g.Place.Path] = slices.Contains(g.Operations, "execute")
	}
	if !granted["/opt/node/bin/node"] || !granted["/lib"] || granted["/lib64"] || granted[enforce.NodePath] {
		t.Errorf("grants %+v", s.plan.Grants)
	}
	p, err := lowered(t, s, nodeCode("1"), RunOptions{})
	if err != nil || p.command.Args[0] != m.NodePath {
		t.Errorf("%v, process %+v", err, p)
	}
	if w := s.warm(); w.Args[0] != m.NodePath {
		t.Errorf("zygote %q", w.Args[0])
	}
}

// lowered returns the process that a program and the options of its run describe.
func lowered(t *testing.T, s settings, p *Process, o RunOptions) (*Process, error) {
	t.Helper()
	s.WorkInProcess = true
	p.rt = newRuntime(s)
	return p, p.lower(t.Context(), p.rt.opts, o)
}

func TestLauncherOfRun(t *testing.T) {
	code, variable := func() *Process { return nodeCode("1") }, RunOptions{Env: map[string]string{"NODE_OPTIONS": "--no-warnings"}}
	onTerminal := func() *Process { return terminal(nodeCode("1")) }
	for name, tc := range map[string]struct {
		program  func() *Process
		options  RunOptions
		launcher Launcher
		want     Launcher
		reason   bool
	}{
		"a program":                 {code, RunOptions{}, LauncherZygote, LauncherZygote, false},
		"a program with a variable": {code, variable, LauncherZygote, LauncherExec, true},
		"a program on a terminal":   {onTerminal, RunOptions{}, LauncherZygote, LauncherExec, true},
		"a command":                 {func() *Process { return terminal(imageProgram("sh", nil)) }, variable, LauncherZygote, LauncherZygote, false},
		"exec requested":            {onTerminal, RunOptions{}, LauncherExec, LauncherExec, false},
	} {
		s, err := Options{Launcher: tc.launcher}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		p, err := lowered(t, s, tc.program(), tc.options)
		if err != nil {
			t.Fatal(err)
		}
		if p.launcher != tc.want || (p.reason != "") != tc.reason || (p.command.Script != 0) != (tc.want == LauncherZygote && p.code != nil) {
			t.Errorf("%s: %v, %q, script %d", name, p.launcher, p.reason, p.command.Script)
		}
	}
}

func nodeCode(code string) *Process { return &Process{code: &guest.Program{Code: code}} }

func terminal(p *Process) *Process {
	p.command.Terminal = true
	return p
}
