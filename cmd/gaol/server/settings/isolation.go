package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/internal/ociruntime"
	"gaol/runtime"
)

// Isolation is what confines a sandbox, by the name that requests have for it.
type Isolation struct {
	Name string
	Kind runtime.Isolation
	OCI  runtime.OCIOptions
}

// isNative is the name that no program may have.
const isNative = "native"

// IsolationNames are the names of the isolations that requests may choose, the default one first.
func (s *Settings) IsolationNames() (names []string) {
	for _, i := range s.Allowed {
		names = append(names, i.Name)
	}
	return names
}

// FindIsolation returns the isolation that a request names. A client that is trusted like root may name any.
func (s *Settings) FindIsolation(name string) (Isolation, error) {
	if s.Trusted {
		return parseIsolation(name)
	}
	at := slices.IndexFunc(s.Allowed, func(i Isolation) bool { return i.Name == name })
	if at < 0 {
		return Isolation{}, fmt.Errorf("isolation %.64q: the server allows %s", name, strings.Join(s.IsolationNames(), ", "))
	}
	return s.Allowed[at], nil
}

// completeIsolations sets Allowed. An isolation with a path is called by the file's name, so that requests need not know
// where it is.
func (s *Settings) completeIsolations() error {
	s.Allowed = nil
	for _, text := range append([]string{cmp.Or(s.Isolation, isNative)}, s.Isolations...) {
		if text == "" {
			return errors.New("isolations: a name is empty")
		}
		i, err := parseIsolation(text)
		if err != nil {
			return err
		}
		if path := i.OCI.Runtime; filepath.IsAbs(path) {
			i.Name = filepath.Base(path)
			if i.OCI.SystemdCgroup {
				i.Name += "+systemd"
			}
		}
		if !programName().MatchString(i.Name) || i.Name == isNative && i.Kind != runtime.IsolationNative {
			return fmt.Errorf("isolation %q: requests call it by the file's name: want letters, digits and ._-, and not native", text)
		}
		same := slices.IndexFunc(s.Allowed, func(other Isolation) bool { return other.Name == i.Name })
		if same >= 0 && s.Allowed[same] != i {
			return fmt.Errorf("isolation %q: the name %s is taken", text, i.Name)
		}
		if same < 0 {
			s.Allowed = append(s.Allowed, i)
		}
	}
	return nil
}

// programName is the form of the name of an OCI runtime.
var programName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(\+systemd)?$`)

// parseIsolation parses a name of the command line. It checks the program that a path names, because requests would only
// fail later.
func parseIsolation(text string) (i Isolation, err error) {
	i.Name = text
	if i.Kind, i.OCI, err = runtime.ParseIsolation(text); err != nil || !filepath.IsAbs(i.OCI.Runtime) {
		return i, err
	}
	if _, err := ociruntime.Find(i.OCI.Runtime); err != nil {
		return i, fmt.Errorf("isolation %q: %w", i.Name, err)
	}
	return i, nil
}
