package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"gaol/rootfs/oci"
)

// ImportedConfig is what an imported image says of how it would be started. It is
// recorded for people: gaol uses PATH of it alone, see [Image.Path].
type ImportedConfig = oci.Config

// Imported is what is known of an image that somebody else made.
type Imported struct {
	Source string         `json:"source"`           // as it was given to Import
	Kind   string         `json:"kind"`             // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string         `json:"digest,omitempty"` // of its manifest
	Config ImportedConfig `json:"config"`
	Blobs  []string       `json:"blobs,omitempty"` // the layers that the store keeps for it

	// NodePath is where its Node is, a guest path without links; "" without Node.
	NodePath string `json:"nodePath,omitempty"`

	// Libraries are those of /lib and /lib64 that are folders of their own, and not
	// links into /usr.
	Libraries []string `json:"libraries,omitempty"`

	// Libc is what its Node is linked to: "glibc", "musl", "static", or "" without Node.
	Libc string `json:"libc,omitempty"`

	// Zygote says that Node can load what makes one that forks.
	Zygote bool `json:"zygote,omitempty"`

	// TrustNode is ImportOptions.TrustNode of any import that made this image.
	TrustNode bool `json:"trustNode,omitempty"`
}

// CanRun says whether runs can be programs of the image's Node. If not, the error wraps
// ErrUnsupported: there is none, or it's older than gaol's own part in it.
func (i *Image) CanRun() error {
	if i.Node == "" {
		return fmt.Errorf("the image has no Node, only commands work in it: %w", ErrUnsupported)
	}
	major, _, _ := strings.Cut(i.Node, ".")
	if n, err := strconv.Atoi(major); err == nil && n < minNode {
		return fmt.Errorf("the image has Node %s, the oldest that runs can be of is %d: %w", i.Node, minNode, ErrUnsupported)
	}
	return nil
}

// CanFork says whether the image's Node may be the zygote, which runs outside of
// every jail. If not, the error wraps ErrUnsupported and says why.
func (i *Image) CanFork() error {
	m := i.Imported
	switch {
	case m == nil:
		return nil
	case i.Node == "":
		return fmt.Errorf("the image has no Node: %w", ErrUnsupported)
	case m.Libc != "glibc":
		return fmt.Errorf("the image's Node is linked to %s, and the zygote works with glibc: %w", m.Libc, ErrUnsupported)
	case !m.Zygote:
		return fmt.Errorf("the image's glibc is older than what the zygote was compiled with: %w", ErrUnsupported)
	case !m.TrustNode:
		return fmt.Errorf("the image is not trusted to run outside of jails, as the zygote does (see ImportOptions.TrustNode): %w", ErrUnsupported)
	}
	return nil
}

// maxPathVariable bounds PATH in bytes.
const maxPathVariable = 4096

// Path is the PATH that an imported image asks for, or "" if it asks for none that
// makes sense: a list of absolute, clean paths.
func (i *Image) Path() string {
	if i.Imported == nil {
		return ""
	}
	return sanePath(i.Imported.Config.Env)
}

func sanePath(env []string) string {
	value := variable(env, "PATH")
	if value == "" || len(value) > maxPathVariable {
		return ""
	}
	for _, dir := range strings.Split(value, ":") {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return ""
		}
	}
	return value
}

// variable is the last value of a variable, as the one that counts.
func variable(env []string, name string) (value string) {
	for _, v := range env {
		if k, text, found := strings.Cut(v, "="); found && k == name {
			value = text
		}
	}
	return value
}

// merge adds what a new image of the same content, and so the same id, knows better:
// that gaol built it itself, or that it is trusted.
// Precondition: the store's lock is held.
func (s *Store) merge(digits string, fresh *Image) error {
	old, err := s.load(digits)
	if err != nil || old.Imported == nil {
		return err
	}
	switch {
	case fresh.Imported == nil:
		old.Imported, old.Node, old.NPM = nil, fresh.Node, fresh.NPM
	case fresh.Imported.TrustNode && !old.Imported.TrustNode:
		old.Imported.TrustNode = true
	default:
		return nil
	}
	text, err := json.MarshalIndent(old, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(old.dir, imageFile)
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return errors.Join(syncTree(old.dir), os.Rename(file+".new", file))
}
