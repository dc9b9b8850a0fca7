package rootfs

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/jail/enter"
	"gaol/jail/zygote"
	"gaol/rootfs/layer"
	"gaol/rootfs/programs"
)

// defaultPath is where programs are searched if an image does not set PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findNode searches the image's Node: first where gaol's own images have it, then in PATH. It
// executes nothing of the image.
func (m *importer) findNode() error {
	m.image.Imported = &Imported{
		Source: m.name, Kind: m.source.Kind, Digest: m.source.Digest, Config: m.source.Config, TrustNode: m.options.TrustNode,
	}
	for _, dir := range []string{"/lib", "/lib64"} {
		if m.tree.IsFolder(dir) {
			m.image.Imported.Libraries = append(m.image.Imported.Libraries, dir)
		}
	}
	for _, dir := range strings.Split(path.Dir(nodeBinary)+":"+cmp.Or(m.image.Path(), defaultPath), ":") {
		f, err := m.tree.OpenFile(path.Join(dir, "node"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = m.recordNode(f)
		f.Close()
		if err != nil || m.image.Node != "" {
			return err
		}
	}
	m.report.Line("the image lacks Node: only commands run in it")
	return nil
}

// recordNode records the path, the version and the C library of Node, if f is a program that
// can start.
func (m *importer) recordNode(f *os.File) error {
	loader, ok := m.loaderOf(f)
	if !ok {
		return nil
	}
	libc := "static"
	if loader != "" {
		l, err := m.tree.OpenFile(loader)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the program's libraries are missing
		}
		if err != nil {
			return err
		}
		l.Close()
		libc = "glibc"
		if strings.HasPrefix(path.Base(loader), "ld-musl") {
			libc = "musl"
		}
	}
	at, err := m.tree.GuestPath(f)
	if err != nil {
		return err
	}
	version, err := nodeVersion(f, m.source.Config.Env)
	if err != nil {
		return err
	}
	m.image.Node, m.image.Imported.NodePath, m.image.Imported.Libc = version, at, libc
	m.report.Line("it has Node %s (%s)", version, libc)
	return nil
}

// loaderOf returns the loader of a program. It reports false if f is not an executable
// program for this machine.
func (m *importer) loaderOf(f *os.File) (loader string, ok bool) {
	machine := map[string]elf.Machine{"x64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[m.store.in.arch]
	info, err := f.Stat()
	if err != nil || info.Mode()&0o111 == 0 {
		return "", false
	}
	program, err := programs.OpenUntrusted(f)
	if err != nil {
		return "", false
	}
	return programs.Loader(program), program.Machine == machine
}

// unknownVersion is recorded if the version of a Node cannot be found.
const unknownVersion = "unknown"

// releaseForm matches process.release.headersUrl, which Node's official builds contain.
var releaseForm = lazyregexp.New(`/download/[a-z]+/v([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})/node-v`)

// nodeVersion finds the version in the program, or else in the image's environment.
// Both can be forged: a launcher that depends on the version must trust the image.
func nodeVersion(f *os.File, env []string) (string, error) {
	const overlap = 128 // more than releaseForm matches
	chunk := make([]byte, 1<<20)
	for kept := 0; ; {
		n, err := io.ReadFull(f, chunk[kept:])
		if found := releaseForm().FindSubmatch(chunk[:kept+n]); found != nil {
			return string(found[1]), nil
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return "", err
		}
		kept = copy(chunk, chunk[len(chunk)-overlap:])
	}
	if v := variable(env, "NODE_VERSION"); npmVersion().MatchString(v) && strings.Count(v, ".") == 2 {
		return v, nil
	}
	return unknownVersion, nil
}

// addJailFiles adds what guests and the jail need to an imported tree: the mount points of
// the jail, and the programs that start one. Those must be gaol's own: a process enters a
// jail by executing the entry program with the host's rights.
func (m *importer) addJailFiles(ctx context.Context) error {
	for _, dir := range mountPoints {
		if err := m.tree.EnsureFolder(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/dev", path.Dir(enter.Path)} {
		if err := m.tree.EmptyFolder(dir); err != nil {
			return err
		}
	}
	if err := m.findNode(); err != nil {
		return err
	}
	err := m.addJailPrograms(ctx)
	if err == nil && m.image.Imported.Libc == "glibc" {
		m.image.Imported.Zygote, err = canLoadZygote(m.tree)
	}
	return err
}

// canLoadZygote reports whether the image's C library has all symbol versions that the
// zygote's shared object was linked to.
func canLoadZygote(t *layer.Tree) (bool, error) {
	object, err := t.OpenFile(zygote.Path)
	if err != nil {
		return false, err
	}
	defer object.Close()
	ours, err := elf.NewFile(object)
	var needs []elf.DynamicVersionNeed
	if err == nil && ours.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		needs, err = ours.DynamicVersionNeeds()
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", zygote.Path, err)
	}
	libc, err := readLibc(t)
	if err != nil || !bytes.Contains(libc, []byte("\x00GLIBC_2.")) {
		return false, err
	}
	for _, library := range needs {
		for _, version := range library.Needs {
			if !bytes.Contains(libc, []byte("\x00"+version.Dep+"\x00")) {
				return false, nil
			}
		}
	}
	return true, nil
}

// maxLibc bounds how many bytes of an image's C library are read. It is several times the
// size of any existing one.
const maxLibc = 16 << 20

// readLibc reads the image's C library; nil if it has none. The names of its symbol versions
// are searched in its bytes, because package elf reads without bounds from a hostile
// file.
func readLibc(t *layer.Tree) ([]byte, error) {
	for _, dir := range programs.LibraryDirs {
		f, err := t.OpenFile(path.Join(dir, "libc.so.6"))
		if err != nil {
			continue
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxLibc))
	}
	return nil, nil
}
