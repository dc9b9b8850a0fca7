package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Narrow merges a run's permissions over its runtime's. inner may only narrow outer: the
// first rule of inner that allows an operation outer denies is a *[RuleError]. The env scope is
// not compared: pass only variables for which [Permissions.PassesEnv] of both returns
// true.
func Narrow(outer, inner Permissions, w World) (Permissions, error) {
	outer = outer.Over(Default())
	for _, p := range []Permissions{outer, inner} {
		if err := p.Check(); err != nil {
			return Permissions{}, err
		}
	}
	merged := inner.Over(outer)
	l, o := newLowering(merged, w), newLowering(outer, w)
	for _, of := range []*lowering{o, l} {
		if !of.checkPlaces() {
			return Permissions{}, of.errs[0]
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

// compare compares a scope with outer's at every resource that a rule of either
// distinguishes.
func (l *lowering) compare(info *scopeInfo, outer Permissions) (worst *RuleError) {
	for _, res := range l.resources(info, outer) {
		for _, o := range info.ops {
			in := l.p.Decide(info.name, o.name, res)
			if !in.Allowed || outer.Decide(info.name, o.name, res).Allowed || worst != nil && in.Rule >= worst.Rule {
				continue
			}
			on := ""
			if info.key != "" {
				on = " on " + formatSample(res, l.p, outer)
			}
			worst = ruleError(info.name, in.Rule, "it allows "+string(o.name)+on+", which the runtime denies", "leave the scope out")
		}
	}
	return worst
}

// formatSample formats the place that a sample represents as rules write it.
func formatSample(resource string, permissions ...Permissions) string {
	_, other := portsOf(nil, permissions...)
	if port := ":" + strconv.Itoa(int(other)); strings.Contains(resource, "://") && strings.HasSuffix(resource, port) {
		resource = strings.TrimSuffix(resource, port) + ":*"
	}
	return strings.NewReplacer("\x00", "**", otherHost, "*").Replace(resource)
}

// resources returns one resource for each set that the rules of both permissions treat
// alike.
func (l *lowering) resources(info *scopeInfo, outer Permissions) []string {
	switch info.name {
	case FS, ChildProcess:
		places := slices.Concat(l.p.places(info.name), outer.places(info.name), folderPlaces(l.w.Own, l.w.Shared))
		var samples []string
		for _, n := range newTree(places) {
			samples = append(samples, n.place.sample())
		}
		return samples
	case Network:
		return networkSamples(l.p, outer)
	}
	return []string{""}
}

// otherHost is a host name that no rule uses.
const otherHost = "a--no-rule-has-this"

// networkSamples returns localhost, otherHost and the host of each pattern, with otherHost
// for a wildcard, with every named port.
func networkSamples(permissions ...Permissions) []string {
	samples := []string{"dns://" + otherHost}
	hosts := []string{"tcp://localhost", "udp://localhost", "tcp://" + otherHost, "udp://" + otherHost}
	for _, p := range permissions {
		for _, e := range p.entries(Network) {
			end, _ := parseEndpoint(e.text)
			host := end.proto + "://" + strings.Replace(end.host, "*", otherHost, 1)
			if end.proto == "dns" {
				samples = append(samples, host)
			} else {
				hosts = append(hosts, host)
			}
		}
	}
	ports, _ := portsOf(nil, permissions...)
	for _, host := range hosts {
		for _, r := range ports {
			samples = append(samples, host+":"+strconv.Itoa(int(r.First)))
		}
	}
	return samples
}

// LowerRun is [Lower] for a run with the permissions inner, narrowed from outer, in a jail
// that was created for outer. The plan is complete: its mounts are the jail's, and its
// ruleset must be applied instead of the runtime's.
//
// A run uses the jail's mounts. It may be granted fewer Landlock operations, but an operation
// cannot be revoked below a folder that grants it. stat and readlink are as in the runtime, and
// so is chmod unless the run has none. A list of programs must be the runtime's.
// Everything else is a *[RuleError].
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
	l.outer, l.outerPermissions = jail, outer
	l.plan.Hide, l.plan.Show, l.plan.ReadOnly, l.plan.NoExec = jail.Hide, jail.Show, jail.ReadOnly, jail.NoExec
	l.plan.Pinned, l.plan.Sealed = jail.Pinned, jail.Sealed
	return l.lower()
}
