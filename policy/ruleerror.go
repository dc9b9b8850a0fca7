package policy

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// RuleError reports a rule that no kernel mechanism can enforce or, from [Narrow], a rule
// that allows more than the runtime does.
type RuleError struct {
	Scope   string
	Rule    int    // index in the scope's rules; -1 for the default or the whole scope
	Place   string // such as fs.rules[1].paths[0]
	Value   string // the value at Place, if it is a single one
	Why     string
	Nearest string // a replacement that can be enforced; may be ""
}

// Error returns the place, the reason, and the nearest enforceable rule.
func (e *RuleError) Error() string {
	place := e.Place + ": "
	if e.Value != "" {
		place += strconv.Quote(e.Value) + ": "
	}
	return errorText(place, e.Why, e.Nearest)
}

// ruleError returns an error about a whole rule, or about a scope's default.
func ruleError(scope string, rule int, why, nearest string) *RuleError {
	place := scope
	if rule >= 0 {
		place = RuleName(scope, rule)
	}
	return &RuleError{Scope: scope, Rule: rule, Place: place, Why: why, Nearest: nearest}
}

// entryError returns an error about one pattern of a rule.
func entryError(e entry, why, nearest string) *RuleError {
	place := fmt.Sprintf("%s.%s[%d]", RuleName(e.scope, e.rule), e.key, e.num)
	return &RuleError{Scope: e.scope, Rule: e.rule, Place: place, Value: e.text, Why: why, Nearest: nearest}
}

// entry is one pattern and its place.
type entry struct {
	scope, key string
	rule, num  int
	text       string
}

// RuleName returns the name of a scope's rule, such as fs.rules[0], or of its default if rule is -1.
func RuleName(scope string, rule int) string {
	if rule >= 0 {
		return fmt.Sprintf("%s.rules[%d]", scope, rule)
	}
	return scope + ".default"
}

// entries returns all patterns of a scope in order.
func (p Permissions) entries(scope string) []entry {
	var all []entry
	info := scopeNamed(scope)
	for i, r := range info.of(&p).Rules {
		for n, text := range r.entries() {
			all = append(all, entry{info.name, info.key, i, n, text})
		}
	}
	return all
}

// pathEntries returns the patterns of the scopes whose resources are paths.
func (p Permissions) pathEntries() []entry {
	return slices.Concat(p.entries(FS), p.entries(ChildProcess))
}

// Refuse calls wrong with each place that a rule of fs or childProcess names. If wrong
// returns a reason why the rule cannot be enforced there, Refuse returns a *[RuleError]
// with it and the nearest rule; several are joined.
func (p Permissions) Refuse(wrong func(Place) (why, nearest string)) error {
	l := &lowering{p: p}
	for _, e := range p.pathEntries() {
		place, ok := placeOf(e.text)
		if why, nearest := wrong(place); ok && why != "" {
			l.reject(entryError(e, why, nearest))
		}
	}
	return l.joinErrors()
}

// urlPorts are the ports of URLs that name none.
var urlPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "ssh": "22"}

// nearestEndpoint returns the most likely network pattern for text that is not a pattern: a URL, or
// a host with or without a port. It returns "" for other texts.
func nearestEndpoint(text string) string {
	if checkText(text) != nil {
		return ""
	}
	proto, rest, ok := strings.Cut(LowerName(text), "://")
	if !ok {
		proto, rest = "tcp", proto
	}
	port, isURL := urlPorts[proto]
	if isURL {
		proto = "tcp"
		rest, _, _ = strings.Cut(rest, "/")
		rest = rest[strings.LastIndexByte(rest, '@')+1:]
	}
	host, given, err := net.SplitHostPort(rest)
	if err != nil { // there is no port
		host = strings.Trim(rest, "[]")
	}
	nearest := proto + "://" + nearestHost(host)
	if proto != "dns" {
		nearest += ":" + cmp.Or(given, port, "*")
	}
	if checkNet(nearest) != nil {
		return ""
	}
	return nearest
}

// nearestHost returns an address or a CIDR prefix in its canonical form, and a name without the
// dots at its ends, which mean a suffix or the root.
func nearestHost(host string) string {
	if p, err := netip.ParsePrefix(host); err == nil {
		host = p.Masked().String()
	} else if a, err := netip.ParseAddr(host); err == nil {
		host = a.WithZone("").String()
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	host = strings.TrimSuffix(host, ".")
	if strings.HasPrefix(host, ".") {
		host = "*" + host
	}
	return host
}
