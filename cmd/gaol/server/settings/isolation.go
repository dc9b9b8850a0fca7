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

// AllIsolations returns the isolations that requests may choose, the default one first.
func (s *Settings) AllIsolations() []Isolation {
	all, err := s.listIsolations()
	if err != nil {
		panic(err) // complete has checked them
	}
	return all
}

// IsolationNames are the names of AllIsolations.
func (s *Settings) IsolationNames() (names []string) {
	for _, i := range s.AllIsolations() {
		names = append(names, i.Name)
	}
	return names
}

// FindIsolation returns the isolation that a request names; "" is the default one. A client that is
// trusted like root may name any.
func (s *Settings) FindIsolation(name string) (Isolation, error) {
	all := s.AllIsolations()
	if name == "" {
		return all[0], nil
	}
	if s.Trusted {
		i, err := parseIsolation(name)
		return i, cmp.Or(err, i.checkProgram())
	}
	at := slices.IndexFunc(all, func(i Isolation) bool { return i.Name == name })
	if at < 0 {
		return Isolation{}, fmt.Errorf("isolation %.64q: the server allows %s", name, strings.Join(s.IsolationNames(), ", "))
	}
	return all[at], nil
}

// checkIsolations checks the names, and that there are the programs that they name.
func (s *Settings) checkIsolations() error {
	all, err := s.listIsolations()
	for _, i := range all {
		err = errors.Join(err, i.checkProgram())
	}
	return err
}

// listIsolations parses the names. An isolation with a path is called by the file's name, so that
// requests need not know where it is.
func (s *Settings) listIsolations() (all []Isolation, err error) {
	for _, text := range append([]string{cmp.Or(s.Isolation, isNative)}, s.Isolations...) {
		i, err := parseIsolation(text)
		if err != nil {
			return nil, err
		}
		if path := i.OCI.Runtime; filepath.IsAbs(path) {
			i.Name = filepath.Base(path)
			if i.OCI.SystemdCgroup {
				i.Name += "+systemd"
			}
		}
		if !programName().MatchString(i.Name) || i.Name == isNative && i.Kind != runtime.IsolationNative {
			return nil, fmt.Errorf("isolation %q: requests call it by the file's name: want letters, digits and ._-, and not native", text)
		}
		same := slices.IndexFunc(all, func(other Isolation) bool { return other.Name == i.Name })
		if same >= 0 && all[same] != i {
			return nil, fmt.Errorf("isolation %q: the name %s is taken", text, i.Name)
		}
		if same < 0 {
			all = append(all, i)
		}
	}
	return all, nil
}

// programName is the form of the name of an OCI runtime.
var programName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(\+systemd)?$`)

// parseIsolation parses a name of the command line.
func parseIsolation(text string) (i Isolation, err error) {
	if text == "" {
		return i, errors.New("isolations: a name is empty")
	}
	i.Name = text
	i.Kind, i.OCI, err = runtime.ParseIsolation(text)
	return i, err
}

// checkProgram checks the program that a path names, because requests would only fail later.
func (i Isolation) checkProgram() error {
	if !filepath.IsAbs(i.OCI.Runtime) {
		return nil
	}
	if _, err := ociruntime.Find(i.OCI.Runtime); err != nil {
		return fmt.Errorf("isolation %q: %w", i.Name, err)
	}
	return nil
}
