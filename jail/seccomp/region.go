package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

// region is the set of calls in which some bits of the arguments have given values. It is
// what one rule of an OCI runtime can express: a rule has one condition for each argument,
// and conditions do not have a negation under a mask.
type region [maxArgument + 1]struct{ mask, value uint64 }

func (r region) conditions() []specs.LinuxSeccompArg {
	var list []specs.LinuxSeccompArg
	for i, c := range r {
		if c.mask != 0 {
			list = append(list, specs.LinuxSeccompArg{Index: uint(i), Op: specs.OpMaskedEqual, Value: c.mask, ValueTwo: c.value})
		}
	}
	return list
}

// permitted returns the calls that no refusal matches, or first one with a label. The
// regions are disjoint: runtimes differ in which of several matching rules they apply.
func permitted(list []Refusal) []region {
	var all []region
	rest := []region{{}}
	for _, r := range list {
		var matched []region
		matched, rest = r.split(rest)
		if r.Label != "" {
			all = append(all, matched...)
		}
	}
	return append(all, rest...)
}

// split divides regions into the calls that the refusal matches and the others.
func (r Refusal) split(all []region) (matched, others []region) {
	for _, m := range r.Match {
		yes, no := m.split(all)
		all, others = yes, append(others, no...)
	}
	return all, others
}

func (m Match) split(all []region) (matched, others []region) {
	var among []region
	for _, v := range m.Values {
		var rest []region
		for _, r := range all {
			in, out := r.cut(m.Arg, m.Mask, v)
			among, rest = append(among, in...), append(rest, out...)
		}
		all = rest
	}
	if m.None {
		return all, among
	}
	return among, all
}

// cut divides a region into the calls whose masked argument equals value, and the others: one
// region for each bit, of the calls that differ in that bit and in no higher one. Starting with the
// high bits gives the fewest regions, because most values are small.
func (r region) cut(arg uint, mask, value uint64) (in, out []region) {
	if (r[arg].value^value)&r[arg].mask&mask != 0 {
		return nil, []region{r}
	}
	for bit := uint64(1) << 63; bit != 0; bit >>= 1 {
		if mask&^r[arg].mask&bit == 0 {
			continue
		}
		other := r
		r[arg].mask, r[arg].value = r[arg].mask|bit, r[arg].value|value&bit
		other[arg].mask, other[arg].value = other[arg].mask|bit, other[arg].value|^value&bit
		out = append(out, other)
	}
	return []region{r}, out
}
