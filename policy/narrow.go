package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Narrow merges a run's permissions over its runtime's, which inner may only
// narrow: a *[RuleError] names the first rule of inner that allows what outer
// denies. What is allowed of variables is not compared: pass those for which
// [Permissions.PassesEnv] is true of both.
func Narrow(outer, inner Permissions, w World) (Permissions, error) {
	outer = outer.Over(Default())
	for _, p := range []Permissions{outer, inner} {
		if err := p.Check(); err != nil {
			return Permissions{}, err
		}
	}
	merged := inner.Over(outer)
	l, o := newLowering(merged, w), newLowering(outer, w)
	for _, scope := range []string{FS, ChildProcess} {
		if !o.checkPlaces(scope) {
			return Permissions{}, o.errs[0]
		}
		if !l.checkPlaces(scope) {
			return Permissions{}, l.errs[0]
		}
	}
	for _, info := range scopes {
		if info.of(&inner).IsZero() || info.name == Env {
			continue
		}
		if err := l.compare(&info, outer); err != nil {
			return Permissions{}, err
		}
	}
	return merged, nil
}

// excess is an operation that a run's rule allows and its runtime denies.
type excess struct {
	rule     int
	op       Operation
	resource string
}

// within compares a scope with outer's wherever either of them changes.
func (l *lowering) compare(info *scopeInfo, outer Permissions) error {
	var worst *excess
	for _, res := range l.resources(info, outer) {
		for _, o := range info.ops {
			in := l.p.Decide(info.name, o.name, res)
			if !in.Allowed || outer.Decide(info.name, o.name, res).Allowed {
				continue
			}
			if worst == nil || in.Rule < worst.rule {
				worst = &excess{in.Rule, o.name, res}
			}
		}
	}
	if worst == nil {
		return nil
	}
	on := ""
	if info.key != "" {
		on = " on " + formatSample(worst.resource, *info.of(&l.p), *info.of(&outer))
	}
	return ruleError(info.name, worst.rule, "it allows "+string(worst.op)+on+", which the runtime denies", "leave the scope out")
}

// formatSample writes the place that a probe represents as rules write it.
func formatSample(resource string, scopes ...Scope) string {
	_, other := portsOf(scopes...)
	if port := ":" + strconv.Itoa(int(other)); strings.Contains(resource, "://") && strings.HasSuffix(resource, port) {
		resource = strings.TrimSuffix(resource, port) + ":*"
	}
	return strings.NewReplacer("\x00", "**", otherHost, "*").Replace(resource)
}

// resources stand for all that a rule of either can tell apart.
func (l *lowering) resources(info *scopeInfo, outer Permissions) []string {
	a, b := *info.of(&l.p), *info.of(&outer)
	switch info.name {
	case FS, ChildProcess:
		places := slices.Concat(placesOf(info, a), placesOf(info, b), folderPlaces(l.w.Own, l.w.Shared))
		var samples []string
		for _, n := range newTree(places) {
			samples = append(samples, n.place.sample())
		}
		return samples
	case Network:
		return networkSamples(a, b)
	}
	return []string{""}
}

// otherHost is a host's name that no rule has.
const otherHost = "a--no-rule-has-this"

// networkSamples are localhost with every port, and each pattern's own host and port,
// with a name that no rule has for a wildcard.
func networkSamples(scopes ...Scope) []string {
	ports, other := portsOf(scopes...)
	samples := []string{"dns://" + otherHost}
	for _, port := range append(ports, other) {
		end := ":" + strconv.Itoa(int(port))
		samples = append(samples, "tcp://localhost"+end, "udp://localhost"+end, "tcp://"+otherHost+end, "udp://"+otherHost+end)
	}
	for _, s := range scopes {
		for _, e := range entriesOf(scopeNamed(Network), s) {
			end, _ := parseEndpoint(e.text)
			text := end.proto + "://" + strings.Replace(end.host, "*", otherHost, 1)
			switch end.port {
			case "":
			case "*":
				text += ":" + strconv.Itoa(int(other))
			default:
				text += ":" + end.port
			}
			samples = append(samples, text)
		}
	}
	return samples
}

// LowerRun is [Lower] for a run whose permissions are inner narrowed from outer,
// in a jail that was made for outer. The plan is whole: its mounts are the jail's,
// its ruleset is to be applied without the runtime's.
//
// A run has no mounts of its own. It may have fewer of Landlock's operations, but
// none taken back below a folder that has it; stat and readlink are then as the
// runtime has them, and so is chmod unless the run has none. A list of programs is
// the runtime's. All else is a *[RuleError].
func LowerRun(outer, inner Permissions, w World) (*Plan, error) {
	merged, err := Narrow(outer, inner, w)
	if err != nil {
		return nil, err
	}
	outer = outer.Over(Default())
	jail, err := Lower(outer, w)
	if err != nil {
		return nil, err
	}
	l := newLowering(merged, w)
	l.outer, l.outerFS = jail, outer.FS
	l.plan.Hide, l.plan.Show = slices.Clone(jail.Hide), slices.Clone(jail.Show)
	l.plan.ReadOnly, l.plan.NoExec = slices.Clone(jail.ReadOnly), slices.Clone(jail.NoExec)
	l.plan.Pinned, l.plan.Sealed = slices.Clone(jail.Pinned), slices.Clone(jail.Sealed)
	return l.lower()
}
