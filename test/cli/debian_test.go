package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gaol/test/tier"
)

// The Debian package is installed, upgraded, removed and purged in an overlay of this machine's file
// system, where nothing changes the machine. Without systemd the server is not started.
func TestDebianPackage(t *testing.T) {
	tier.Soak(t)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed: this is not Debian")
	}
	dir := t.TempDir()
	build := func(version string) string {
		file := filepath.Join(dir, version+".deb")
		run(t, ".ci/deb/build", gaol(t), version, file, "-Znone")
		return file
	}
	first, second := build("v1.2-3-gabc"), build("v1.10.0")
	if info := run(t, "dpkg-deb", "--field", first, "Version", "Architecture"); !strings.Contains(info, "Version: 1.2.3.gabc\n") {
		t.Errorf("the package: %s", info)
	}
	if run(t, ".ci/deb/build", gaol(t), "309d513-dirty", dir+"/c.deb", "-Znone"); !strings.HasPrefix(run(t, "dpkg-deb", "--field", dir+"/c.deb", "Version"), "0~20") {
		t.Error("a version without a release is not older than the first one")
	}
	upper := filepath.Join(dir, "upper")
	script, err := filepath.Abs("testdata/debian.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-e", script, dir, first, second)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, path := range list(t, upper) {
		if strings.Contains(path, "gaol") && !strings.HasPrefix(path, "/var/lib/dpkg/") && !isWhiteout(upper+path) {
			t.Errorf("%s is left after purge", path)
		}
	}
	for _, file := range []string{"/etc/group", "/etc/gshadow"} {
		if text, err := os.ReadFile(upper + file); err != nil || strings.Contains(string(text), "\ngaol:") {
			t.Errorf("%s after purge: %v, %s", file, err, text)
		}
	}
}

// isWhiteout reports whether a file of an overlay stands for a deleted file.
func isWhiteout(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The packages for Debian and npm contain runc's notice, as its license requires.
func TestNoticeOfRunc(t *testing.T) {
	dir := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/opencontainers/runc"))
	notice, err := os.ReadFile(filepath.Join(dir, "NOTICE"))
	if err != nil || !strings.Contains(string(notice), "Copyright") {
		t.Fatalf("the notice: %v\n%s", err, notice)
	}
	ours, err := os.ReadFile("../../.ci/deb/copyright")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(notice)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(string(ours), "\n "+line+"\n") {
			t.Errorf(".ci/deb/copyright lacks %q", line)
		}
	}
}
