package network

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

const registryURL = "https://" + host + "/npm"

// npm installs the same tree as outside, runs its scripts and makes its links.
func TestNPMInstall(t *testing.T) {
	tier.Soak(t)
	ca := newInternet(t)
	r := newRegistry(t, registryURL)
	serve(t, ca, &http.Server{Handler: http.StripPrefix("/npm", r)})
	args := []string{"install", "--registry", registryURL, "--no-fund", "--no-update-notifier"}
	outside := newProject(t)
	plain(t, outside, []string{"npm_config_cafile=" + ca.File}, "npm", args...)
	want := readTree(t, outside)
	downloads := r.tarballs.Swap(0)
	if downloads < int64(treeSize()) {
		t.Fatalf("%d packages were downloaded", downloads)
	}
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		dir := newProject(t)
		rt := harness.CreateExact(t, options(ca, l, runtime.Mount{Source: dir, Target: "/workspace", Access: runtime.ReadWrite}))
		command(t, rt, map[string]string{"npm_config_cafile": caFile}, "npm", args...)
		if diff := cmp.Diff(want, readTree(t, dir)); diff != "" {
			t.Errorf("(-outside +inside):\n%.4000s", diff)
		}
		if n := r.tarballs.Swap(0); n != downloads {
			t.Errorf("%d packages were downloaded, want %d", n, downloads)
		}
		printed := strings.Fields(command(t, rt, nil, "npx", "--offline", "p00"))
		all := map[string]bool{}
		for _, p := range printed {
			all[p[:strings.LastIndexByte(p, '@')]] = true
		}
		if len(all) != treeSize() {
			t.Errorf("a program of the tree found %d packages: %q", len(all), printed)
		}
	})
}

// Without the authority's certificate, and with a registry that no rule allows, nothing is
// installed.
func TestNPMInstallRefused(t *testing.T) {
	ca := newInternet(t)
	r := newRegistry(t, registryURL)
	serve(t, ca, &http.Server{Handler: http.StripPrefix("/npm", r)})
	perLauncher(t, func(t *testing.T, l runtime.Launcher) {
		rt := harness.CreateExact(t, options(ca, l))
		for url, want := range map[string]string{registryURL: "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "https://other.test/npm": "EAI_AGAIN"} {
			res, err := rt.Command(t.Context(), "npm", []string{"install", "--registry", url, "--fetch-retries", "0", "p00"}, runtime.RunOptions{Timeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			if res.ExitCode == 0 || !strings.Contains(string(res.Stderr), want) {
				t.Errorf("%s: exit code %d, stderr %s", url, res.ExitCode, res.Stderr)
			}
			var names []string
			for _, d := range res.Denials {
				if d.Operation == "dns" {
					names = append(names, d.Target)
				}
			}
			if want := url == registryURL; want != (len(names) == 0) || !want && !slices.Equal(names, []string{"dns://other.test"}) {
				t.Errorf("%s: denials %+v", url, res.Denials)
			}
		}
		if n := r.tarballs.Load(); n != 0 {
			t.Errorf("%d packages were downloaded", n)
		}
	})
}

// newProject makes a folder with a project that needs the whole tree.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"name":"project","version":"1.0.0","dependencies":{"%s":"^1.0.0","%s":"^2.0.0"}}`, packageName(0), packageName(treeSize()-1))
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readTree returns the mode and the content of each file in a folder.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type() == fs.ModeSymlink:
			content, err = root.Readlink(path)
		case d.Type().IsRegular():
			var b []byte
			b, err = root.ReadFile(path)
			content = fmt.Sprintf("%x", sha256.Sum256(b))
		}
		tree[path] = info.Mode().String() + " " + content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// With the preset npm the command line allows the registry of the host's configuration.
// Without that, it names the flag that would.
func TestPresetNPM(t *testing.T) {
	ca := newInternet(t)
	serve(t, ca, &http.Server{Handler: http.StripPrefix("/npm", newRegistry(t, registryURL))})
	dir, home := newProject(t), t.TempDir()
	install := func() (stderr string, err error) {
		cmd := exec.Command(harness.Gaol(t), "run", "--preset", "npm", "--mount", dir+":/workspace:rw", "--mount", ca.File+":"+caFile,
			"--env", "npm_config_cafile="+caFile, "--env", "npm_config_registry="+registryURL, "--timeout", "0", "--command", "--", "npm", "install", "--fetch-retries", "0")
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "npm_config_globalconfig=" + filepath.Join(home, "none")}
		var text strings.Builder
		cmd.Stderr = &text
		err = cmd.Run()
		return text.String(), err
	}
	if stderr, err := install(); err == nil || !strings.Contains(stderr, "dns://"+host) || !strings.Contains(stderr, "allow with --allow-net "+host+"\n") {
		t.Errorf("another registry: %v, stderr %s", err, stderr)
	}
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte("registry="+registryURL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stderr, err := install(); err != nil {
		t.Errorf("%v, stderr %s", err, stderr)
	}
	if n := len(readTree(t, filepath.Join(dir, "node_modules"))); n < 5*treeSize() {
		t.Errorf("%d files were installed", n)
	}
}
