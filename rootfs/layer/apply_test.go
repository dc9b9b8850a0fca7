package layer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/tier"
)

// TestApply checks the trees of valid layers, and of hostile ones that have a meaning inside the
// tree.
func TestApply(t *testing.T) {
	base := []entry{folder("a/"), file("a/x", "1"), file("a/y", "2"), file("b/z", "3")}
	for name, tc := range map[string]struct {
		layers [][]entry
		want   string
	}{
		"plain":              {[][]entry{base}, "a/ a/x=1 a/y=2 b/ b/z=3"},
		"replaced":           {[][]entry{base, {file("a/x", "new")}}, "a/ a/x=new a/y=2 b/ b/z=3"},
		"whiteout":           {[][]entry{base, {file("a/.wh.x", "")}}, "a/ a/y=2 b/ b/z=3"},
		"whiteout of folder": {[][]entry{base, {file(".wh.a", "")}}, "b/ b/z=3"},
		"whiteout, then new": {[][]entry{base, {file(".wh.a", ""), file("a/n", "4")}}, "a/ a/n=4 b/ b/z=3"},
		"new, then whiteout": {[][]entry{base, {file("a/n", "4"), file(".wh.a", "")}}, "a/ a/n=4 b/ b/z=3"},
		"whiteout of own":    {[][]entry{{file("x", "1"), file(".wh.x", "")}}, "x=1"},
		"of nothing":         {[][]entry{base, {file("c/.wh.x", ""), file("a/.wh.q", "")}}, "a/ a/x=1 a/y=2 b/ b/z=3"},
		"opaque":             {[][]entry{base, {file("a/.wh..wh..opq", ""), file("a/n", "4")}}, "a/ a/n=4 b/ b/z=3"},
		"opaque comes late":  {[][]entry{base, {file("a/n", "4"), file("a/y", "5"), file("a/.wh..wh..opq", "")}}, "a/ a/n=4 a/y=5 b/ b/z=3"},
		"opaque root":        {[][]entry{base, {file(".wh..wh..opq", ""), file("n", "4")}}, "n=4"},
		"opaque, hard link":  {[][]entry{base, {hard("a/n", "a/x"), file("a/.wh..wh..opq", "")}}, "a/ a/n=1 b/ b/z=3"},
		"aufs":               {[][]entry{base, {file(".wh..wh.plnk", ""), file("a/.wh..wh.aufs", "")}}, "a/ a/x=1 a/y=2 b/ b/z=3"},
		"absolute":           {[][]entry{{file("/etc/x", "1"), file("./y", "2"), folder("./"), folder("/")}}, "etc/ etc/x=1 y=2"},
		"through link":       {[][]entry{{folder("usr/lib/"), link("lib", "usr/lib"), file("lib/x", "1")}}, "lib>usr/lib usr/ usr/lib/ usr/lib/x=1"},
		"absolute link":      {[][]entry{{folder("in/"), link("out", "/in"), file("out/x", "1")}}, "in/ in/x=1 out>/in"},
		"link out, written":  {[][]entry{{link("out", "../../.."), file("out/x", "1")}}, "out>../../.. x=1"},
		"over a link":        {[][]entry{{link("x", "/../secret"), file("x", "1")}}, "x=1"},
		"link over folder":   {[][]entry{base, {link("a", "b")}}, "a>b b/ b/z=3"},
		"folder over link":   {[][]entry{{folder("b/"), link("a", "b")}, {folder("a/"), file("a/x", "1")}}, "a/ a/x=1 b/"},
		"file over folder":   {[][]entry{base, {file("a", "f")}}, "a=f b/ b/z=3"},
		"folder over file":   {[][]entry{base, {file("a/x/n", "")}, nil}, "refused"},
		"types in turn":      {[][]entry{{file("a", "1"), folder("a/"), link("a", "b"), hard("a", "a"), file("a", "2")}}, "a=2"},
		"hard link":          {[][]entry{base, {hard("c", "a/x")}}, "a/ a/x=1 a/y=2 b/ b/z=3 c=1"},
		"hard link, changed": {[][]entry{base, {hard("c", "/a/x"), file("c", "new")}}, "a/ a/x=1 a/y=2 b/ b/z=3 c=new"},
		"hard to link":       {[][]entry{{link("a", "/../secret"), hard("b", "a")}}, "a>/../secret b>/../secret"},
		"devices":            {[][]entry{{typed(tar.TypeChar, "c"), typed(tar.TypeBlock, "b"), typed(tar.TypeFifo, "f"), file("x", "")}}, "x="},
		"device over file":   {[][]entry{base, {typed(tar.TypeChar, "a")}}, "b/ b/z=3"},
		"odd names":          {[][]entry{{file("\xff\xfe", "1"), file("a\nb", "2"), file(strings.Repeat("n", 255), "3")}}, "a\nb=2 " + strings.Repeat("n", 255) + "=3 \xff\xfe=1"},

		"parent":               {[][]entry{{file("../secret", "1")}}, "refused"},
		"parent inside":        {[][]entry{{file("a/../../secret", "1")}}, "refused"},
		"parent, harmless":     {[][]entry{{file("a/../b", "1")}}, "refused"},
		"parent folder":        {[][]entry{{folder("../new/")}}, "refused"},
		"link to nowhere":      {[][]entry{{link("a", "/nowhere"), file("a/x", "1")}}, "refused"},
		"loop":                 {[][]entry{{link("a", "b"), link("b", "a"), file("a/x", "1")}}, "refused"},
		"below a file":         {[][]entry{{file("a", ""), file("a/x", "1")}}, "refused"},
		"magic link":           {[][]entry{{link("a", "/proc/self/root"), file("a/x", "1")}}, "refused"},
		"hard link out":        {[][]entry{{hard("a", "../secret")}}, "refused"},
		"hard link through":    {[][]entry{{link("up", ".."), hard("a", "up/secret")}}, "refused"},
		"hard link to folder":  {[][]entry{{folder("a/"), hard("b", "a")}}, "refused"},
		"hard link to root":    {[][]entry{{hard("b", "/")}}, "refused"},
		"hard link to nothing": {[][]entry{{hard("b", "a")}}, "refused"},
		"whiteout of root":     {[][]entry{base, {file(".wh..", "")}}, "refused"},
		"whiteout of parent":   {[][]entry{base, {file("a/.wh...", "")}}, "refused"},
		"whiteout of nothing":  {[][]entry{base, {file("a/.wh.", "")}}, "refused"},
		"below a whiteout":     {[][]entry{base, {file(".wh.a/x", "")}}, "refused"},
		"whiteout through":     {[][]entry{{link("up", ".."), file("up/.wh.secret", "")}}, "up>.."},
		"opaque through":       {[][]entry{{link("up", "../.."), file("up/.wh..wh..opq", "")}}, "up>../.."},
		"root is a link":       {[][]entry{{link("./", "/etc")}}, "refused"},
		"root is a file":       {[][]entry{{hard("/", "x")}}, "refused"},
		"long name":            {[][]entry{{file(strings.Repeat("n", 256), "")}}, "refused"},
		"long path":            {[][]entry{{file(strings.Repeat("n/", 1200)+"x", "")}}, "refused"},
		"deep":                 {[][]entry{{folder(strings.Repeat("n/", maxDepth+1))}}, "refused"},
		"deep by a link":       {[][]entry{{folder(strings.Repeat("n/", 100)), link("l", strings.Repeat("n/", 100)), folder("l/" + strings.Repeat("n/", 100))}}, "refused"},
		"unknown type":         {[][]entry{{typed('Z', "x")}}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			err := p.apply(t, Limits{}, tc.layers...)
			switch {
			case tc.want == "refused" && !errors.Is(err, ErrRefused):
				t.Errorf("error %v", err)
			case tc.want != "refused" && err != nil:
				t.Error(err)
			case tc.want != "refused":
				if got := p.list(t); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			}
			p.checkOutside(t)
		})
	}
}

// TestUnguardedJoinLeaks checks that the entries of "link out, written" do lead out if paths are
// joined and trusted.
func TestUnguardedJoinLeaks(t *testing.T) {
	p := newPlace(t)
	must(t, os.Symlink("..", filepath.Join(p.root, "out")))
	must(t, os.WriteFile(filepath.Join(p.root, "out/x"), nil, 0o600))
	if _, err := os.Stat(filepath.Join(p.dir, "x")); err != nil {
		t.Error(err)
	}
}

func TestModes(t *testing.T) {
	p := newPlace(t)
	entries := []entry{file("setuid", ""), file("setgid", ""), file("none", ""), file("owner", ""), file("caps", "")}
	for n, mode := range []int64{0o4755, 0o2711, 0, 0o100, 0o644} {
		entries[n].Mode = mode
		entries[n].Uid, entries[n].Gid = 1000, 1000
	}
	entries[4].PAXRecords = map[string]string{
		"SCHILY.xattr.security.capability":     "\x01\x00\x00\x02\x20\x00\x00\x00",
		"SCHILY.xattr.trusted.overlay.opaque":  "y",
		"LIBARCHIVE.xattr.user.overlay.opaque": "eQ==",
	}
	entries = append(entries, entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o7777, Uid: 5}})
	must(t, p.apply(t, Limits{}, entries))
	for name, want := range map[string]os.FileMode{
		"setuid": 0o755, "setgid": 0o755, "none": 0o644, "owner": 0o755, "caps": 0o644, "d": 0o755 | os.ModeDir,
	} {
		info, err := os.Lstat(filepath.Join(p.root, name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); info.Mode() != want || int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s has mode %s, owner %d:%d", name, info.Mode(), st.Uid, st.Gid)
		}
		if n, err := unix.Llistxattr(filepath.Join(p.root, name), nil); n != 0 {
			t.Errorf("%s has attributes: %d, %v", name, n, err)
		}
	}
}

// flood is a tar archive of n empty files, generated while it is read.
func flood(n int) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		name := make([]byte, 4)
		for i := range n {
			for at := range name {
				name[at] = 'a' + byte(i>>(6*at)&63)%26
			}
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: string(name)}); err != nil {
				return
			}
		}
		_ = w.CloseWithError(out.Close())
	}()
	return r
}

func TestLimits(t *testing.T) {
	sparse := file("x", "")
	for name, tc := range map[string]struct {
		limits Limits
		layers [][]entry
		fits   bool
	}{
		"entries fit":      {Limits{Entries: 2}, [][]entry{{file("a", ""), file("b", "")}}, true},
		"entries":          {Limits{Entries: 2}, [][]entry{{file("a", ""), file("b", "")}, {file("c", "")}}, false},
		"the same name":    {Limits{Entries: 2}, [][]entry{{file("a", ""), file("a", ""), file("a", "")}}, false},
		"whiteouts":        {Limits{Entries: 2}, [][]entry{{file(".wh.a", ""), file(".wh.b", ""), file(".wh.c", "")}}, false},
		"implicit folders": {Limits{Entries: 9}, [][]entry{{file("1/2/3/4/5/6/7/8/9/x", "")}}, false},
		"bytes fit":        {Limits{Bytes: 8 << 10}, [][]entry{{file("a", strings.Repeat("x", 4<<10))}}, true},
		"bytes":            {Limits{Bytes: 8 << 10}, [][]entry{{file("a", strings.Repeat("x", 9<<10))}}, false},
		"bytes of many":    {Limits{Bytes: 8 << 10}, [][]entry{{file("a", strings.Repeat("x", 4<<10))}, {file("b", strings.Repeat("x", 4<<10))}}, false},
		"headers":          {Limits{Bytes: 4 << 10}, [][]entry{{sparse, sparse, sparse, sparse, sparse, sparse, sparse, sparse, sparse}}, false},
	} {
		p := newPlace(t)
		err := p.apply(t, tc.limits, tc.layers...)
		if tc.fits && err != nil || !tc.fits && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMillionFiles(t *testing.T) {
	tier.Soak(t)
	p := newPlace(t)
	tree, err := Open(p.root, Limits{Entries: 5000})
	must(t, err)
	defer tree.Close()
	r := flood(1e6)
	defer r.Close()
	if err := tree.Apply(t.Context(), r); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(p.root); len(names) > 5000 {
		t.Errorf("%d files", len(names))
	}
}

// TestSparse checks that holes count, although they take no space in the archive.
func TestSparse(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Format: tar.FormatPAX, Size: 0, PAXRecords: map[string]string{"comment": "sparse"}}))
	must(t, w.Close())
	// The same header in the format GNU tar 1.0 claims a file of a terabyte.
	body := strings.Join([]string{"1", "0", "0", ""}, "\n")
	var pax bytes.Buffer
	record := "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n21 GNU.sparse.name=x\n37 GNU.sparse.realsize=1099511627776\n"
	raw := rawHeader('x', "PaxHeaders/x", len(record))
	pax.Write(raw)
	pax.WriteString(record + strings.Repeat("\x00", 512-len(record)))
	pax.Write(rawHeader('0', "x", 512))
	pax.WriteString(body + strings.Repeat("\x00", 512-len(body)))
	pax.Write(make([]byte, 1024))

	p := newPlace(t)
	tree, err := Open(p.root, Limits{})
	must(t, err)
	defer tree.Close()
	must(t, tree.Apply(t.Context(), &out))
	if err := tree.Apply(t.Context(), &pax); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a terabyte of holes: %v", err)
	}
}

// rawHeader makes a ustar header that tar.Writer would refuse.
func rawHeader(kind byte, name string, size int) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x000000000\x000000000\x00")
	copy(h[124:], octal(size, 11)+"\x00"+octal(0, 11)+"\x00")
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	copy(h[148:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], octal(sum, 6)+"\x00 ")
	return h
}

func octal(n, digits int) string {
	text := ""
	for range digits {
		text = string(rune('0'+n%8)) + text
		n /= 8
	}
	return text
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTruncatedAndCanceled(t *testing.T) {
	p := newPlace(t)
	tree, err := Open(p.root, Limits{})
	must(t, err)
	defer tree.Close()
	whole := pack(file("x", strings.Repeat("x", 4096)))
	if err := tree.Apply(t.Context(), bytes.NewReader(whole[:2048])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a layer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inside := io.MultiReader(bytes.NewReader(whole[:1024]), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, nil
	}), bytes.NewReader(whole[1024:]))
	if err := tree.Apply(ctx, inside); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled in a file: %v", err)
	}
	if err := tree.Apply(ctx, bytes.NewReader(whole)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := tree.Copy(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled copy: %v", err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add(pack(file("a/x", "1"), link("l", ".."), file("l/y", "2"), hard("z", "a/x")), pack(file("a/.wh.x", "")))
	f.Add(pack(link("out", "../secret"), file("out", "1")), pack(file(".wh..wh..opq", "")))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		p := newPlace(t)
		tree, err := Open(p.root, Limits{Bytes: 1 << 20, Entries: 200})
		must(t, err)
		defer tree.Close()
		if tree.Apply(t.Context(), bytes.NewReader(lower)) == nil {
			_ = tree.Apply(t.Context(), bytes.NewReader(upper))
		}
		p.checkOutside(t)
	})
}

// TestWhiteoutTwice checks that a repeated whiteout does not search the tree each time.
func TestWhiteoutTwice(t *testing.T) {
	for _, name := range []string{opaque, whiteout + "a"} {
		p := newPlace(t)
		tree, err := Open(p.root, Limits{})
		must(t, err)
		defer tree.Close()
		a := newApplier(tree)
		for _, want := range []string{"", "a=x"} { // a file made outside of the layer shows whether the tree is searched
			must(t, os.WriteFile(filepath.Join(p.root, "a"), []byte("x"), 0o644))
			h := file(name, "").Header
			must(t, a.entry(&h, nil))
			if got := p.list(t); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}
