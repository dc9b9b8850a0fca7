package rootfs

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"gaol/jail/enter"
	"gaol/jail/zygote"
	"gaol/rootfs/layer"
)

// furnish makes of a tree of others one that guests can live in: with the places that
// the jail mounts at, and with what starts a jail, which must be ours. A process
// begins its way into the jail as the entry program, with the host's rights.
func (m *importer) furnish(ctx context.Context) (err error) {
	t, err := layer.Open(m.root(), layer.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, dir := range mountPoints {
		if err := t.Folder(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/dev", path.Dir(enter.Path)} {
		if err := t.Clear(dir); err != nil {
			return err
		}
	}
	if err := m.findNode(t); err != nil {
		return err
	}
	if err := m.addStarters(ctx); err != nil {
		return err
	}
	if m.image.Imported.Libc == "glibc" {
		m.image.Imported.Zygote, err = fits(t)
	}
	return err
}

// addStarters adds what starts a jail, to a folder that is ours.
func (m *importer) addStarters(ctx context.Context) (err error) {
	root, err := os.OpenRoot(m.root())
	if err != nil {
		return err
	}
	m.tree = &tree{root}
	defer func() { err = errors.Join(err, m.tree.Close()) }()
	for _, add := range []func(*build, context.Context) error{(*build).compileEnter, (*build).compileZygote, (*build).copyReaper} {
		if err := add(&m.build, ctx); err != nil {
			return err
		}
	}
	return nil
}

// interpreterOf is the loader of a program of this machine; ok says that it is one.
func (m *importer) interpreterOf(f *os.File) (loader string, ok bool) {
	machine := map[string]elf.Machine{"x64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[m.store.in.arch]
	info, err := f.Stat()
	if err != nil || info.Mode()&0o111 == 0 {
		return "", false
	}
	plain, err := withoutSections(f)
	if err != nil {
		return "", false
	}
	program, err := elf.NewFile(plain)
	if err != nil {
		return "", false
	}
	return interpreter(program), program.Machine == machine
}

// headed is a file with another beginning.
type headed struct {
	io.ReaderAt
	head []byte
}

func (h headed) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.ReaderAt.ReadAt(p, off)
	if off < int64(len(h.head)) {
		copy(p[:n], h.head[off:])
	}
	return n, err
}

// withoutSections gives a 64-bit program without its sections, which what starts it is no
// part of: package elf reads and decompresses as much as they say, and these are not ours.
func withoutSections(f io.ReaderAt) (io.ReaderAt, error) {
	var h elf.Header64
	if err := binary.Read(io.NewSectionReader(f, 0, int64(binary.Size(h))), binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	if elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, ErrUnsupported
	}
	h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0
	head, err := binary.Append(nil, binary.LittleEndian, h)
	return headed{f, head}, err
}

// usualPath is where programs are looked for if an image does not say.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findNode looks for the image's Node: where gaol's own images have it, then in PATH.
// Nothing of the image is run for that.
func (m *importer) findNode(t *layer.Tree) error {
	m.image.Imported = &Imported{
		Source: m.name, Kind: m.source.Kind, Digest: m.source.Digest, Config: m.source.Config, TrustNode: m.options.TrustNode,
	}
	for _, dir := range []string{"/lib", "/lib64"} {
		if t.IsFolder(dir) {
			m.image.Imported.Libraries = append(m.image.Imported.Libraries, dir)
		}
	}
	dirs := sanePath(m.source.Config.Env)
	if dirs == "" {
		dirs = usualPath
	}
	for _, dir := range append([]string{path.Dir(nodeBinary)}, strings.Split(dirs, ":")...) {
		f, err := t.File(path.Join(dir, "node"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found, err := m.useNode(t, f)
		if found {
			m.image.Imported.NodePath, err = t.Path(f)
		}
		f.Close()
		if err != nil || found {
			return err
		}
	}
	m.report.line("it has no Node: only commands run in it")
	return nil
}

// useNode notes what the file is, if it is a Node that can be started.
func (m *importer) useNode(t *layer.Tree, f *os.File) (bool, error) {
	loader, ok := m.interpreterOf(f)
	if !ok {
		return false, nil
	}
	libc := "static"
	if loader != "" {
		l, err := t.File(loader)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // its libraries are not there
		}
		if err != nil {
			return false, err
		}
		l.Close()
		libc = "glibc"
		if strings.HasPrefix(path.Base(loader), "ld-musl") {
			libc = "musl"
		}
	}
	version, err := nodeVersion(f, m.source.Config.Env)
	if err != nil {
		return false, err
	}
	m.image.Node, m.image.Imported.Libc = version, libc
	m.report.line("it has Node %s (%s)", version, libc)
	return true, nil
}

// unknownVersion is that of a Node that does not tell.
const unknownVersion = "unknown"

// releaseForm is how Node's own builds know where their headers are: process.release.
var releaseForm = regexp.MustCompile(`/download/[a-z]+/v([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})/node-v`)

// nodeVersion finds the version in the program, or else in the image's environment.
// Neither is to be believed; a launcher that goes by it must trust the image.
func nodeVersion(f *os.File, env []string) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	const overlap = 128 // more than releaseForm matches
	chunk := make([]byte, 1<<20)
	for kept := 0; ; {
		n, err := io.ReadFull(f, chunk[kept:])
		if found := releaseForm.FindSubmatch(chunk[:kept+n]); found != nil {
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
	if v := variable(env, "NODE_VERSION"); versionForm.MatchString(v) && strings.Count(v, ".") == 2 {
		return v, nil
	}
	return unknownVersion, nil
}

// libraryFolders are where an image's C library may be.
var libraryFolders = []string{"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/lib",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}

// fits says whether the image's C library has all that our object for the zygote was
// linked to on this host.
func fits(t *layer.Tree) (bool, error) {
	object, err := t.File(zygote.Path)
	if err != nil {
		return false, err
	}
	defer object.Close()
	ours, err := elf.NewFile(object)
	if err != nil {
		return false, fmt.Errorf("%s: %w", zygote.Path, err)
	}
	var needs []elf.DynamicVersionNeed
	if ours.SectionByType(elf.SHT_GNU_VERNEED) != nil {
		if needs, err = ours.DynamicVersionNeeds(); err != nil {
			return false, fmt.Errorf("%s: %w", zygote.Path, err)
		}
	}
	libc, err := libcOf(t)
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

// maxLibc is how many bytes of an image's C library are looked at: several times what
// those that there are have.
const maxLibc = 16 << 20

// libcOf is the image's C library, which has the names of its versions in its table of
// names; nil if there is none. Package elf has no bounds for what is not ours.
func libcOf(t *layer.Tree) ([]byte, error) {
	for _, dir := range libraryFolders {
		f, err := t.File(path.Join(dir, "libc.so.6"))
		if err != nil {
			continue
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxLibc))
	}
	return nil, nil
}
