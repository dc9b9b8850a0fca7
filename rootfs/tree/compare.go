package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Change is a difference between a file and the list.
type Change string

// The changes. A folder that was added or removed is one change, with all its content.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Type    Change = "type"
	Mode    Change = "mode"
	Owner   Change = "owner"
	Content Change = "content"
	Target  Change = "target" // of a link
	Xattrs  Change = "xattrs"
)

// Difference is one change of a file, folder or link.
type Difference struct {
	Path   string // in the tree, absolute; may contain any character
	Change Change

	// Want and Got are the values in the list and in the tree: the type and the mode,
	// such as "drwxr-xr-x", for files that were added or removed or differ in type or
	// mode; "UID:GID"; SHA-256; targets; names of attributes.
	Want, Got string
}

// CompareOptions are the options of Compare. The zero value compares everything with a tree
// of root's.
type CompareOptions struct {
	// UID is the owner of all files. The group must be root's if UID is.
	UID uint32

	// Reads reports whether to read the content of a regular file. Nil: always.
	Reads func(fs.FileInfo) bool
}

// Compare compares the tree at root with the list that [Seal] or [Sum] wrote. It follows no
// links. Files have no extended attributes but the labels of security modules. Times are
// not compared, since the id does not depend on them.
func Compare(ctx context.Context, root string, list []byte, o CompareOptions) ([]Difference, error) {
	want, err := parseList(list)
	if err != nil {
		return nil, err
	}
	c := &comparison{options: o, want: want}
	err = filepath.WalkDir(root, func(host string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, host)
		if err != nil {
			return err
		}
		return c.visit(host, path.Join("/", rel))
	})
	if err != nil {
		return nil, err
	}
	for p, e := range c.want {
		if _, above := c.want[path.Dir(p)]; !above && !e.visited {
			c.add(p, Removed, e.mode, "")
		}
	}
	slices.SortStableFunc(c.found, func(a, b Difference) int { // as a walk visits them
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return c.found, nil
}

// comparison compares the files of a tree with a list.
type comparison struct {
	options CompareOptions
	want    map[string]*listEntry // the rest of the list, by path
	found   []Difference

	attributes [64 << 10]byte // XATTR_LIST_MAX
}

// listEntry is a line of the list.
type listEntry struct {
	mode, content string
	visited       bool // it has another type now, and stays in the rest above its content
}

// errList rejects a list that neither Seal nor Sum has written.
var errList = errors.New("malformed list of files")

func parseList(list []byte) (map[string]*listEntry, error) {
	entries := map[string]*listEntry{}
	for line := range strings.Lines(string(list)) {
		mode, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, errList
		}
		name, err := strconv.Unquote(quoted)
		content, failed := strconv.Unquote(strings.TrimPrefix(rest[len(quoted):], " "))
		if err != nil || failed != nil {
			return nil, errList
		}
		entries[path.Join("/", name)] = &listEntry{mode: mode, content: content}
	}
	return entries, nil
}

func (c *comparison) add(p string, change Change, want, got string) {
	c.found = append(c.found, Difference{p, change, want, got})
}

// visit compares the file at the host path with its entry of the list. It returns fs.SkipDir for a
// folder that the list lacks.
func (c *comparison) visit(host, p string) error {
	info, err := os.Lstat(host)
	if err != nil {
		return err
	}
	mode := info.Mode().String()
	want, listed := c.want[p]
	switch {
	case !listed:
		c.add(p, Added, "", mode)
		return skip(info)
	case typeOf(want.mode) != typeOf(mode):
		want.visited = true
		c.add(p, Type, want.mode, mode)
		return skip(info)
	}
	delete(c.want, p)
	return c.compare(host, p, info, want)
}

// skip returns fs.SkipDir for a folder. For a file, that would skip the rest of its folder.
func skip(info fs.FileInfo) error {
	if info.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// compare compares the attributes of files of the same path and type.
func (c *comparison) compare(host, p string, info fs.FileInfo, want *listEntry) error {
	if got := info.Mode().String(); got != want.mode {
		c.add(p, Mode, want.mode, got)
	}
	st := info.Sys().(*syscall.Stat_t)
	if uid := c.options.UID; st.Uid != uid || uid == 0 && st.Gid != 0 {
		c.add(p, Owner, fmt.Sprintf("%d:%d", uid, uid), fmt.Sprintf("%d:%d", st.Uid, st.Gid))
	}
	if !info.Mode().IsRegular() || c.options.Reads == nil || c.options.Reads(info) {
		change := Content
		if info.Mode()&fs.ModeSymlink != 0 {
			change = Target
		}
		got, err := content(host, info)
		if err != nil {
			return err
		}
		if got != want.content {
			c.add(p, change, want.content, got)
		}
	}
	names, err := c.xattrs(host)
	if len(names) > 0 {
		c.add(p, Xattrs, "", strings.Join(names, " "))
	}
	return err
}

// typeOf returns the letters of a mode that are its type, "" for a regular file.
func typeOf(mode string) string {
	return strings.Trim(strings.TrimRight(mode, "rwx-"), "ugt")
}

// xattrs returns the names of a file's extended attributes. It leaves out the labels that
// security modules give to all files. File capabilities are not a label.
func (c *comparison) xattrs(host string) ([]string, error) {
	size, err := unix.Llistxattr(host, c.attributes[:])
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "listxattr", Path: host, Err: err}
	}
	return slices.DeleteFunc(strings.Split(string(c.attributes[:size]), "\x00"), func(name string) bool {
		return name == "" || strings.HasPrefix(name, "security.") && name != "security.capability"
	}), nil
}
