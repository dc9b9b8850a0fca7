package rootfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// An image or a snapshot that another store has sent is the same one, unless a byte of it has changed.
func TestTransfer(t *testing.T) {
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, open := range []func(string) (*Store, error){Open, OpenSnapshots} {
		from, err := open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		to, err := open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b := &build{store: from, plan: plan{names: []string{"mine"}}, report: download.NewReporter(nil)}
		b.image = Image{Node: "1.2.3", Arch: "x64", Packages: []Package{{Name: "p", Version: "1"}}}
		sum := sumOf(from)
		sent, err := b.add(t.Context(), "", sum, func(root string) error {
			file := filepath.Join(root, "tmp", "a")
			return errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("text"), 0o750), os.Chtimes(file, old, old),
				os.Symlink("/etc", filepath.Join(root, ".wh.link")))
		})
		if err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		if err := sent.Send(&stream); err != nil {
			t.Fatal(err)
		}
		text := stream.String()
		for what, damaged := range map[string]string{
			"content": strings.Replace(text, "text", "test", 1), "half": text[:len(text)/2], "packages": strings.Replace(text, `"version":"1"`, `"version":"2"`, 1),
			"nothing": "", "no JSON": "{\n" + text,
		} {
			if got, err := to.Receive(t.Context(), sent.ID, "other", layer.Limits{}, strings.NewReader(damaged)); err == nil {
				t.Errorf("%s: %+v", what, got)
			}
		}
		if _, err := to.Receive(t.Context(), sent.ID, "other", layer.Limits{Bytes: 3}, strings.NewReader(text)); err == nil {
			t.Error("more bytes than the limit: no error")
		}
		left(t, to)
		got, err := to.Receive(t.Context(), sent.ID, "other", layer.Limits{}, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(filepath.Join(sent.Root(), "tmp/a"))
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(filepath.Join(got.Root(), "tmp/a"))
		if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("%+v, want %+v, %v", after, before, err)
		}
		if got.ID != sent.ID || got.Node != sent.Node || len(got.Packages) != 1 || got.Names[0] != "other" || len(got.Names) != 1 {
			t.Errorf("%+v, want %+v", got, sent)
		}
	}
}
