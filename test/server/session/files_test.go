package session

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"gaol/cmd/gaol/server/settings"
	protocol "gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/vfs/hostfs"
)

func testFiles(t *testing.T, c *client.Client) {
	f := createIn(t, c, client.CreateOptions{}).FS()
	content := bytes.Repeat([]byte("\x00\xffabc"), 300_000) // more than a window
	if err := f.WriteFile(soon(t), "/workspace/new/a.bin", content, hostfs.WriteOptions{Parents: true, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.ReadFile(soon(t), "/workspace/new/a.bin"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	info, err := f.Stat(soon(t), "/workspace/new/a.bin")
	if err != nil || info.Name() != "a.bin" || info.Size() != int64(len(content)) || info.Mode() != 0o600 || info.IsDir() || info.ModTime().IsZero() {
		t.Errorf("%v %+v", err, info)
	}
	name := "/workspace/\xff\xfe"
	err = errors.Join(f.WriteFile(soon(t), "/workspace/empty", nil, hostfs.WriteOptions{}), f.Mkdir(soon(t), "/workspace/dir", 0o700),
		f.MkdirAll(soon(t), "/workspace/dir/x/y", 0), f.Rename(soon(t), "/workspace/empty", name))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.ReadFile(soon(t), name); err != nil || len(got) != 0 {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	if err := f.Rename(soon(t), name, "/workspace/\xfd"); err != nil {
		t.Error(err)
	}
	list, more, err := f.List(soon(t), "/workspace", client.ListOptions{Recursive: true})
	var paths []string
	for _, i := range list {
		paths = append(paths, i.Path)
	}
	if want := "/workspace/dir /workspace/dir/x /workspace/dir/x/y /workspace/new /workspace/new/a.bin /workspace/\xfd"; err != nil || more || strings.Join(paths, " ") != want {
		t.Errorf("%v %v %q", err, more, paths)
	}
	if list, more, err = f.List(soon(t), "/workspace", client.ListOptions{Limit: 1}); err != nil || !more || len(list) != 1 || list[0].Mode() != fs.ModeDir|0o700 {
		t.Errorf("%v %v %+v", err, more, list)
	}
	if err := errors.Join(f.Remove(soon(t), "/workspace/\xfd"), f.RemoveAll(soon(t), "/workspace/dir")); err != nil {
		t.Error(err)
	}
}

func testFileErrors(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	f := sb.FS()
	if _, err := sb.Command(soon(t), "sh", []string{"-c", `ln -s "$(printf '/etc/\377')" link`}, runtime.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Lstat(soon(t), "/workspace/link"); err != nil || info.Mode().Type() != fs.ModeSymlink || info.Target != "/etc/\xff" {
		t.Errorf("%v %+v", err, info)
	}
	_, err := f.ReadFile(soon(t), "/workspace/link")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
	if _, err = f.ReadFile(soon(t), "/workspace"); !isCode(err, "conflict") {
		t.Errorf("a folder: %v", err)
	}
	if err = f.WriteFile(soon(t), "/etc/x", nil, hostfs.WriteOptions{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the image: %v", err)
	}
	if err = f.WriteFile(soon(t), "relative", nil, hostfs.WriteOptions{}); !isCode(err, "invalid") {
		t.Errorf("a relative path: %v", err)
	}
	if err = f.WriteFile(soon(t), "/workspace/x", nil, hostfs.WriteOptions{Mode: 0o1777}); !isCode(err, "invalid") {
		t.Errorf("a bad mode: %v", err)
	}
	if err = f.Mkdir(soon(t), "/workspace", 0); !isCode(err, "conflict") {
		t.Errorf("an existing folder: %v", err)
	}
	if err = f.RemoveAll(soon(t), "/workspace/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	failed := errors.New("the reader failed")
	r := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(failed))
	if _, err = f.WriteFrom(soon(t), "/workspace/part", r, hostfs.WriteOptions{}); !errors.Is(err, failed) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err = f.Stat(soon(t), "/workspace/part"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an incomplete file: %v", err)
	}
	if err = f.WriteFile(soon(t), "/workspace/large", make([]byte, 300_000), hostfs.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err = f.ReadTo(soon(t), "/workspace/large", failingWriter{failed}); !errors.Is(err, failed) {
		t.Errorf("a writer that fails: %v", err)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	if _, err = f.ReadFile(soon(t), "/workspace/large"); !isCode(err, "not_found") {
		t.Errorf("a closed sandbox: %v", err)
	}
}

// failingWriter fails.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func testTar(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{Files: map[string][]byte{"/workspace/a/b": []byte("text"), "/workspace/a/c": make([]byte, 500_000)}})
	if _, err := sb.Command(soon(t), "mkfifo", []string{"/workspace/a/pipe"}, runtime.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if skipped, err := sb.FS().Tar(soon(t), &archive, "/workspace/a"); err != nil || skipped != 1 {
		t.Fatalf("%v, %d skipped", err, skipped)
	}
	report, err := sb.FS().Untar(soon(t), &archive, "/workspace/copy/of/a", client.UntarOptions{Parents: true})
	if err != nil || report.Entries != 2 || report.Bytes != 500_004 {
		t.Errorf("%v %+v", err, report)
	}
	if got, err := sb.FS().ReadFile(soon(t), "/workspace/copy/of/a/b"); err != nil || string(got) != "text" {
		t.Errorf("%v %q", err, got)
	}
	if _, err := sb.FS().Tar(soon(t), io.Discard, "/workspace/a/b"); !isCode(err, "conflict") {
		t.Errorf("an archive of a file: %v", err)
	}
	var hostile bytes.Buffer
	w := tar.NewWriter(&hostile)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "../escaped", Mode: 0o644}), w.Close()); err != nil {
		t.Fatal(err)
	}
	hostile.Write(make([]byte, 1<<20)) // which the server does not read
	if _, err := sb.FS().Untar(soon(t), &hostile, "/workspace", client.UntarOptions{}); !isCode(err, "invalid") {
		t.Errorf("a hostile archive: %v", err)
	}
	if _, err := sb.FS().Untar(soon(t), strings.NewReader("no archive"), "/workspace", client.UntarOptions{}); !isCode(err, "invalid") {
		t.Errorf("no archive: %v", err)
	}
}

func testSnapshots(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{Files: map[string][]byte{"/workspace/kept": []byte("kept")}})
	info, err := sb.Snapshot(soon(t), "session-test")
	if err != nil || info.Name != "session-test" || info.Size <= 0 {
		t.Fatalf("%v %+v", err, info)
	}
	if _, err := sb.Snapshot(soon(t), "session-test"); !isCode(err, "conflict") {
		t.Errorf("twice: %v", err)
	}
	if _, err := sb.Snapshot(soon(t), "../x"); !isCode(err, "invalid") {
		t.Errorf("a bad name: %v", err)
	}
	if list, err := c.Snapshots(soon(t)); err != nil || len(list) != 1 || list[0] != info {
		t.Errorf("%v %+v", err, list)
	}
	other := createIn(t, c, client.CreateOptions{Snapshot: "session-test"})
	if got, err := other.FS().ReadFile(soon(t), "/workspace/kept"); err != nil || string(got) != "kept" {
		t.Errorf("%v %q", err, got)
	}
	if err := c.RemoveSnapshot(soon(t), "session-test"); !isCode(err, "conflict") {
		t.Errorf("in use: %v", err)
	}
	if err := errors.Join(other.Close(), c.RemoveSnapshot(soon(t), "session-test")); err != nil {
		t.Error(err)
	}
	if err := c.RemoveSnapshot(soon(t), "session-test"); !isCode(err, "not_found") {
		t.Errorf("twice: %v", err)
	}
}

// testSlowReader: a reader that takes nothing blocks its own file only, and can be canceled.
func testSlowReader(t *testing.T, c *client.Client) {
	f := createIn(t, c, client.CreateOptions{}).FS()
	if err := f.WriteFile(soon(t), "/workspace/large", make([]byte, 4<<20), hostfs.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := f.ReadTo(ctx, "/workspace/large", w)
		done <- err
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := f.ReadFile(soon(t), "/workspace/large"); err != nil || len(got) != 4<<20 {
			t.Errorf("%v, %d bytes", err, len(got))
		}
	}
	cancel()
	_ = r.Close()
	if err := <-done; err == nil {
		t.Error("a canceled read succeeds")
	}
}

// testSlowWriter: a file whose content stops arriving blocks nothing else, and appears at its end.
func testSlowWriter(t *testing.T, c *client.Client) {
	f := createIn(t, c, client.CreateOptions{}).FS()
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := f.WriteFrom(soon(t), "/workspace/slow", r, hostfs.WriteOptions{})
		done <- err
	}()
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile(soon(t), "/workspace/other", make([]byte, 1<<20), hostfs.WriteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat(soon(t), "/workspace/slow"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before its end: %v", err)
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if info, err := f.Stat(soon(t), "/workspace/slow"); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v %+v", err, info)
	}
}

// TestUploadEnds: an upload that is canceled, too large, or whose client vanishes leaves nothing.
func TestUploadEnds(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Upload = 1 << 20 }})
	c := dial(t, s)
	sb := createIn(t, c, client.CreateOptions{Detached: true})
	if err := sb.FS().WriteFile(soon(t), "/workspace/large", make([]byte, 1<<20+1), hostfs.WriteOptions{}); !isCode(err, "too_large") || !strings.Contains(err.Error(), "uploadBytes") {
		t.Errorf("%v", err)
	}
	r := newRaw(t, s, `{}`)
	r.sandbox = sb.ID()
	piece := []byte("part")
	r.request(2, "writeFile", `{"sandbox":"SB","path":"/workspace/canceled"}`)
	r.send(protocol.Append(nil, protocol.KindStdin, 2, piece))
	r.send(protocol.Append(nil, protocol.KindCancel, 2))
	if text := r.until(2, protocol.KindError); !strings.Contains(string(text), `"canceled"`) {
		t.Errorf("%s", text)
	}
	r.request(3, "writeFile", `{"sandbox":"SB","path":"/workspace/vanished"}`)
	r.send(protocol.Append(nil, protocol.KindStdin, 3, piece))
	r.request(4, "unpackFolder", `{"sandbox":"SB","path":"/workspace"}`)
	r.send(protocol.Append(nil, protocol.KindStdin, 4, piece))
	if err := r.CloseNow(); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, "the session has ended", func() bool {
		list, err := c.Sandboxes(soon(t))
		return err == nil && len(list) == 1
	})
	if files, _, err := sb.FS().List(soon(t), "/workspace", client.ListOptions{}); err != nil || len(files) != 0 {
		t.Errorf("%v %+v", err, files)
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the server's log: %s", text)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
}
