package tree

import (
	"bytes"
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
	c := &comparison{options: o, rest: list}
	if err := c.advance(); err != nil {
		return nil, err
	}
	err := filepath.WalkDir(root, func(host string, _ fs.DirEntry, err error) error {
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
	for err == nil && c.next != nil {
		err = c.removed()
	}
	return c.found, err
}

// comparison walks the tree and the list, which have the same order, side by side.
type comparison struct {
	options CompareOptions
	rest    []byte     // of the list
	next    *listEntry // the first entry before rest; nil at the end of the list
	found   []Difference
}

// listEntry is a line of the list.
type listEntry struct{ mode, path, content string }

// errList rejects a list that neither Seal nor Sum has written.
var errList = errors.New("malformed list of files")

func parseEntry(line string) (*listEntry, error) {
	mode, rest, _ := strings.Cut(line, " ")
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return nil, errList
	}
	name, err := strconv.Unquote(quoted)
	content, failed := strconv.Unquote(strings.TrimPrefix(rest[len(quoted):], " "))
	if err != nil || failed != nil {
		return nil, errList
	}
	return &listEntry{mode, path.Join("/", name), content}, nil
}

// advance reads the next entry of the list.
func (c *comparison) advance() (err error) {
	if c.next = nil; len(c.rest) == 0 {
		return nil
	}
	line, rest, _ := bytes.Cut(c.rest, []byte("\n"))
	c.rest = rest
	c.next, err = parseEntry(string(line))
	return err
}

// skipBelow skips the entries of a folder's content.
func (c *comparison) skipBelow(dir string) error {
	for c.next != nil && strings.HasPrefix(c.next.path, strings.TrimSuffix(dir, "/")+"/") {
		if err := c.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) add(p string, change Change, want, got string) {
	c.found = append(c.found, Difference{p, change, want, got})
}

// removed reports the next entry of the list as removed.
func (c *comparison) removed() error {
	gone := c.next
	c.add(gone.path, Removed, gone.mode, "")
	if err := c.advance(); err != nil {
		return err
	}
	return c.skipBelow(gone.path)
}

// visit compares the file at the host path with the next entry of the list. It returns
// fs.SkipDir for a folder that the list lacks.
func (c *comparison) visit(host, p string) error {
	info, err := os.Lstat(host)
	if err != nil {
		return err
	}
	for c.next != nil && isBefore(c.next.path, p) {
		if err := c.removed(); err != nil {
			return err
		}
	}
	if c.next == nil || c.next.path != p {
		c.add(p, Added, "", info.Mode().String())
		return skip(info)
	}
	want := c.next
	if err := c.advance(); err != nil {
		return err
	}
	if typeOf(want.mode) != typeOf(info.Mode().String()) {
		c.add(p, Type, want.mode, info.Mode().String())
		if err := c.skipBelow(p); err != nil {
			return err
		}
		return skip(info)
	}
	return c.compare(host, info, want)
}

// skip returns fs.SkipDir for a folder. For a file, that would skip the rest of its folder.
func skip(info fs.FileInfo) error {
	if info.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// compare compares the attributes of files of the same path and type.
func (c *comparison) compare(host string, info fs.FileInfo, want *listEntry) error {
	if got := info.Mode().String(); got != want.mode {
		c.add(want.path, Mode, want.mode, got)
	}
	st := info.Sys().(*syscall.Stat_t)
	if uid := c.options.UID; st.Uid != uid || uid == 0 && st.Gid != 0 {
		c.add(want.path, Owner, fmt.Sprintf("%d:%d", uid, uid), fmt.Sprintf("%d:%d", st.Uid, st.Gid))
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
			c.add(want.path, change, want.content, got)
		}
	}
	names, err := xattrs(host)
	if len(names) > 0 {
		c.add(want.path, Xattrs, "", strings.Join(names, " "))
	}
	return err
}

// isBefore reports whether a walk visits a before b: folders precede their content, and names
// are sorted within their folder.
func isBefore(a, b string) bool {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) < 0
}

// typeOf returns the letters of a mode that are its type, "" for a regular file.
func typeOf(mode string) string {
	return strings.Trim(strings.TrimRight(mode, "rwx-"), "ugt")
}

// xattrs returns the names of a file's extended attributes. It leaves out the labels that
// security modules give to all files. File capabilities are not a label.
func xattrs(host string) ([]string, error) {
	size, err := unix.Llistxattr(host, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil, nil
	}
	list := make([]byte, max(size, 0))
	if err == nil {
		size, err = unix.Llistxattr(host, list)
	}
	if err != nil {
		return nil, &os.PathError{Op: "listxattr", Path: host, Err: err}
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(list[:size]), "\x00"), "\x00"), func(name string) bool {
		return name == "" || strings.HasPrefix(name, "security.") && name != "security.capability"
	}), nil
}
