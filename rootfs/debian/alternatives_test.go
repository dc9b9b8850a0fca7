package debian

import (
	"slices"
	"testing"

	"gaol/rootfs/layer"
)

// TestParseAlternatives parses commands as Debian's packages contain them.
func TestParseAlternatives(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []alternative
	}{
		"one line": {"\tupdate-alternatives --install /usr/bin/ex ex /usr/bin/vim.basic 30\n", []alternative{{"/usr/bin/ex", "/usr/bin/vim.basic", 30}}},
		"comment": {"update-alternatives --quiet \\\n    --install /usr/bin/cc cc /usr/bin/gcc 20 \\\n    #--slave /a a /b\n\n",
			[]alternative{{"/usr/bin/cc", "/usr/bin/gcc", 20}}},
		"merged folders": {"update-alternatives --quiet --install /lib/cpp cpp /bin/cpp 10", []alternative{{"/usr/lib/cpp", "/usr/bin/cpp", 10}}},
		"slaves": {"update-alternatives --install /usr/bin/awk awk /usr/bin/mawk 5 \\\n --slave /usr/bin/nawk nawk /usr/bin/mawk \\\n --slave /x x /y\n",
			[]alternative{{"/usr/bin/awk", "/usr/bin/mawk", 5}, {"/usr/bin/nawk", "/usr/bin/mawk", 5}, {"/x", "/y", 5}}},
		"substitution after it": {"update-alternatives --install /usr/bin/lzma lzma /usr/bin/xz 20 $(\n", []alternative{{"/usr/bin/lzma", "/usr/bin/xz", 20}}},
		"variable":              {"update-alternatives --install /usr/bin/$i $i $dir/bin/$i $priority", nil},
		"variable in a path":    {"update-alternatives --install /usr/bin/$i i /usr/bin/i 3 --slave /a a /b", []alternative{{"/a", "/b", 3}}},
		"loop": {"for prog in compare convert; do\n\tupdate-alternatives --install /usr/bin/$prog \\\n $prog /usr/bin/$prog-im6.q16 10000 \\\n --slave /m/$prog.1.gz a /m/b\ndone\nupdate-alternatives --install /usr/bin/$prog a /b 1\n",
			[]alternative{{"/usr/bin/compare", "/usr/bin/compare-im6.q16", 10000}, {"/m/compare.1.gz", "/m/b", 10000},
				{"/usr/bin/convert", "/usr/bin/convert-im6.q16", 10000}, {"/m/convert.1.gz", "/m/b", 10000}, {"/usr/bin/convert", "/b", 1}}},
		"variables": {"dir=/usr/lib/jvm/j\ntools='java jexec'\npriority=\"17\"\nother=$(expr $priority - 1)\nfor i in $tools; do\nupdate-alternatives --install /usr/bin/$i $i ${dir}/bin/$i $priority $slave\ndone\n",
			[]alternative{{"/usr/bin/java", "/usr/lib/jvm/j/bin/java", 17}, {"/usr/bin/jexec", "/usr/lib/jvm/j/bin/jexec", 17}}},
		"empty loop":     {"for i in $unknown; do\nupdate-alternatives --install /usr/bin/$i i /b 1\ndone", nil},
		"quotes":         {`update-alternatives --install "/usr/bin/i" i '/usr/bin/j' 3`, nil},
		"parent folders": {"update-alternatives --install /../etc/passwd i /usr/../../i 3", nil},
		"too short": {"update-alternatives --install\nupdate-alternatives --install / a /b\nupdate-alternatives --install /a a /b 3 --slave /c\nupdate-alternatives --install /a a /b 4 --slave",
			[]alternative{{"/a", "/b", 3}, {"/a", "/b", 4}}},
		"another command": {"echo --install /a a /b 3; update-alternatives --remove a /b", nil},
	} {
		if got := parseAlternatives(c.script); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestLinkAlternatives checks that the highest priority wins, and that links neither replace files nor dangle.
func TestLinkAlternatives(t *testing.T) {
	dir := t.TempDir()
	tree, err := layer.Open(dir, layer.Limits{})
	must(t, err)
	defer tree.Close()
	for _, p := range []string{"/bin/low", "/bin/high", "/bin/taken"} {
		must(t, tree.WriteText(p, p))
	}
	must(t, linkAlternatives(tree, []alternative{
		{"/bin/a", "/bin/low", 3}, {"/bin/a", "/bin/high", 20}, {"/bin/a", "/bin/missing", 90},
		{"/bin/taken", "/bin/high", 1}, {"/bin/missing", "/bin/missing", 1},
	}))
	for p, want := range map[string]string{"/bin/a": "/bin/high", "/bin/taken": "/bin/taken"} {
		f, err := tree.OpenFile(p)
		must(t, err)
		defer f.Close()
		if real, err := tree.GuestPath(f); err != nil || real != want {
			t.Errorf("%s leads to %s, want %s", p, real, want)
		}
	}
	if tree.Has("/bin/missing") {
		t.Error("a link dangles")
	}
}

// TestIsPackageName checks names by Debian's policy.
func TestIsPackageName(t *testing.T) {
	for name, want := range map[string]bool{
		"gcc": true, "g++": true, "libstdc++6": true, "python3.11-venv": true, "0ad": true,
		"": false, "a": false, "-a": false, "gcc-": false, "gcc=1": false, "gcc/sid": false, "gcc:i386": false, "GCC": false, "a b": false, "./a.deb": false, "task^": false,
		"gcc\n": false, "*": false,
	} {
		if got := IsPackageName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
