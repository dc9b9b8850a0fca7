package landlock

import "slices"

// Ruleset defines what a domain denies and grants. The zero value denies nothing; Make
// rejects it.
type Ruleset struct {
	// Handled are the rights that are denied unless a rule grants them. If it has any,
	// renames and links from one folder to another are denied with EXDEV, even if Refer
	// is not among them. Only rules that grant Refer for both folders allow them, and
	// only if the file gains no right by it.
	Handled Access

	// Rules grant rights.
	Rules []Rule

	// ConnectTCP are the ports to which TCP sockets may connect. Nil: all. ABI 4.
	ConnectTCP *Ports

	// Signals denies signals to processes outside of the domain. ABI 6.
	Signals bool

	// Degraded makes Make omit the parts that the kernel does not support, which Missing
	// returns, instead of failing with an *ABIError.
	Degraded bool
}

// Rule grants rights to a file or to a folder and everything below it.
type Rule struct {
	Path     string // a guest's path: absolute, without symbolic links
	Tree     bool   // a folder and everything below it; otherwise the path must be a file
	Access   Access // handled rights; a file gets those that apply to files
	Optional bool   // a missing path is not an error
}

// Ports are TCP ports. The zero value has none.
type Ports struct {
	Allowed []uint16
}

// The ABIs of the parts of a ruleset that are not rights to files.
const (
	portsABI   = 4
	signalsABI = 6
)

// need is a part of a ruleset and the ABI that it needs.
type need struct {
	what string
	abi  int
}

// lacks returns the parts of r that an ABI does not support.
func (r *Ruleset) lacks(abi int) []need {
	var list []need
	for _, right := range rights {
		if r.Handled&right.Bit != 0 && right.ABI > abi {
			list = append(list, need{right.Name, right.ABI})
		}
	}
	if r.ConnectTCP != nil && abi < portsABI {
		list = append(list, need{"connect_tcp", portsABI})
	}
	if r.Signals && abi < signalsABI {
		list = append(list, need{"signal scope", signalsABI})
	}
	return list
}

// Needs returns the least ABI that supports all of r, the first release of Linux with that
// ABI, and the part of r that needs it. ABI 0 means that r is empty.
func (r *Ruleset) Needs() (abi int, linux, what string) {
	for _, n := range r.lacks(0) {
		if n.abi > abi {
			abi, linux, what = n.abi, versions[n.abi-1].Linux, n.what
		}
	}
	return abi, linux, what
}

// Missing returns the names of the parts of r that this kernel does not support, which
// Make omits if r is Degraded. Its errors are those of ABI.
func (r *Ruleset) Missing() (names []string, err error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	for _, n := range r.lacks(abi) {
		names = append(names, n.what)
	}
	return names, nil
}

// fit returns r if the ABI supports it. If r is Degraded, it returns a copy without the
// unsupported parts.
func (r *Ruleset) fit(abi int) (*Ruleset, error) {
	need, linux, what := r.Needs()
	if need <= abi {
		return r, nil
	}
	if !r.Degraded {
		return nil, &ABIError{Have: abi, Need: need, Linux: linux, What: what}
	}
	fitted := *r
	fitted.Handled &= mask(func(right right) bool { return right.ABI <= abi })
	fitted.Rules = slices.Clone(r.Rules)
	for i := range fitted.Rules {
		fitted.Rules[i].Access &= fitted.Handled
	}
	if abi < portsABI {
		fitted.ConnectTCP = nil
	}
	fitted.Signals = r.Signals && abi >= signalsABI
	return &fitted, nil
}
