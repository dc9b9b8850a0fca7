package seccomp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tables are the input of compile.
type tables struct {
	allowed, denied []Row
	restrictions    []Row // take precedence over both
	notify          bool  // labelled refusals go to the listener
}

// compile tests, in this order, the architecture, the call and the arguments.
//
// When a filter is loaded, kernels from 5.11 on determine which calls it allows whatever
// their arguments, and do not run it for those. They stop at the first load of an argument,
// so the program must load one only for calls with refusals.
func compile(m machine, t tables) ([]unix.SockFilter, error) {
	p := newProgram()
	outcomes := map[uint32]label{}
	restrictions := byName(t.restrictions)
	add := func(rows []Row, otherwise func(Row) label) error {
		for name, r := range calls(rows) {
			n, err := p.refusals(slices.Concat(restrictions[name], r.Refuse), t.notify, otherwise(r))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if nr, exists := m.number(name); exists { // unknown calls get ENOSYS anyway
				if _, twice := outcomes[nr]; twice {
					return fmt.Errorf("%s: call %d is listed twice", name, nr)
				}
				outcomes[nr] = n
			}
			delete(restrictions, name)
		}
		return nil
	}
	if err := add(t.allowed, func(Row) label { return p.action(unix.SECCOMP_RET_ALLOW) }); err != nil {
		return nil, err
	}
	if err := add(t.denied, func(r Row) label { return p.errno(cmp.Or(r.Errno, deniedErrno)) }); err != nil {
		return nil, err
	}
	for name := range restrictions { // misspelt, and without effect
		return nil, fmt.Errorf("%s: a restriction of a call that is in no table", name)
	}
	kill := p.action(unix.SECCOMP_RET_KILL_PROCESS)
	which := p.search(callNumber, spansOfCalls(outcomes, m, p.errno(unix.ENOSYS), kill))
	p.load(callArch, p.test(unix.BPF_JEQ, m.audit, which, kill))
	return p.finish()
}

// byName joins the refusals of each call.
func byName(rows []Row) map[string][]Refusal {
	all := map[string][]Refusal{}
	for name, r := range calls(rows) {
		all[name] = append(all[name], r.Refuse...)
	}
	return all
}

func spansOfCalls(outcomes map[uint32]label, m machine, unknown, kill label) []span {
	list := spans(outcomes, unknown)
	if m.x32 {
		// -1 is not an x32 call: tracers set it to skip a call.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}

// refusals tests each refusal in order.
func (p *program) refusals(list []Refusal, notify bool, otherwise label) (label, error) {
	n := otherwise
	for i, r := range slices.Backward(list) {
		if err := r.check(); err != nil {
			return 0, fmt.Errorf("refusal %d: %w", i, err)
		}
		refused := p.errno(r.Errno)
		if notify && r.Label != "" {
			refused = p.action(unix.SECCOMP_RET_USER_NOTIF)
		}
		for _, m := range slices.Backward(r.Match) {
			refused = p.match(m, refused, n)
		}
		n = refused
	}
	return n, nil
}

// match tests the high half of an argument first, if the mask includes any of its bits,
// and then the low halves that belong to it.
func (p *program) match(m Match, yes, no label) label {
	if m.None {
		yes, no = no, yes
	}
	lows := map[uint32]map[uint32]label{}
	for _, v := range m.Values {
		high := uint32(v >> 32)
		if lows[high] == nil {
			lows[high] = map[uint32]label{}
		}
		lows[high][uint32(v)] = yes
	}
	offset := uint32(16 + 8*m.Arg) // of the argument, which is little-endian
	low, high := word{offset, uint32(m.Mask)}, word{offset + 4, uint32(m.Mask >> 32)}
	highs := map[uint32]label{}
	for _, h := range slices.Sorted(maps.Keys(lows)) { // equal tables have equal programs
		highs[h] = p.choose(low, lows[h], no)
	}
	return p.choose(high, highs, no)
}

func (p *program) choose(w word, cases map[uint32]label, otherwise label) label {
	if w.mask == 0 {
		return cases[0] // the only case: no value has bits outside of the mask, see check
	}
	return p.search(w, spans(cases, otherwise))
}

// A program is written from its end to its start: jumps only go forward, so their targets are
// known. It contains equal code only once: calls with the same refusals share code.
type program struct {
	reversed []unix.SockFilter
	written  map[code]label
	nearest  map[label]label // to code that was too far away: its last copy, or a jump to it
}

func newProgram() *program {
	return &program{written: map[code]label{}, nearest: map[label]label{}}
}

// label identifies an instruction by its position, counted from 1, from the end of the program.
type label int

// code is an instruction and the code that it leads to: a comparison to yes or no, a return to
// nothing, and others to no.
type code struct {
	op      uint16
	k       uint32
	yes, no label
}

const (
	opReturn = unix.BPF_RET | unix.BPF_K
	opLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAnd    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
)

// add appends an instruction and returns its label. It reuses equal code.
func (p *program) add(c code) label {
	if p.written[c] != 0 {
		return p.written[c]
	}
	in := unix.SockFilter{Code: c.op, K: c.k}
	switch c.op {
	case opReturn:
	case opLoad, opAnd:
		if p.distance(c.no) > 0 {
			p.jump(c.no)
		}
	default:
		yes, no := p.reach(c.yes), p.reach(c.no)
		in.Jt, in.Jf = uint8(p.distance(yes)), uint8(p.distance(no))
	}
	p.written[c] = p.push(in)
	return p.written[c]
}

func (p *program) push(in unix.SockFilter) label {
	p.reversed = append(p.reversed, in)
	return label(len(p.reversed))
}

// jump adds an unconditional jump, whose distance is unlimited.
func (p *program) jump(to label) label {
	return p.push(unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(p.distance(to))})
}

// reach returns the label to which a comparison can jump instead of to: if that is too far away,
// it adds a jump, or a copy of a return.
func (p *program) reach(to label) label {
	const far = math.MaxUint8 - 1 // minus one for an instruction that the other branch may add
	if near := p.nearest[to]; near != 0 && p.distance(near) <= far {
		return near
	}
	if p.distance(to) <= far {
		return to
	}
	if in := p.reversed[to-1]; in.Code == opReturn {
		p.nearest[to] = p.push(in)
	} else {
		p.nearest[to] = p.jump(to)
	}
	return p.nearest[to]
}

// distance returns the number of instructions between the next one and the label's.
func (p *program) distance(to label) int { return len(p.reversed) - int(to) }

// finish returns the instructions in order.
func (p *program) finish() ([]unix.SockFilter, error) {
	if n := len(p.reversed); n > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("%d instructions, the kernel accepts %d", n, unix.BPF_MAXINSNS)
	}
	slices.Reverse(p.reversed)
	return p.reversed, nil
}

func (p *program) action(action uint32) label { return p.add(code{op: opReturn, k: action}) }

func (p *program) errno(e syscall.Errno) label {
	return p.action(unix.SECCOMP_RET_ERRNO | uint32(e))
}

// test compares the loaded word.
func (p *program) test(jump uint16, k uint32, yes, no label) label {
	if yes == no {
		return yes
	}
	return p.add(code{unix.BPF_JMP | jump | unix.BPF_K, k, yes, no})
}

// word is 32 bits of struct seccomp_data, under a mask.
type word struct{ offset, mask uint32 }

const allBits = math.MaxUint32

var (
	callNumber = word{0, allBits}
	callArch   = word{4, allBits}
)

// load loads a word before the code at next.
func (p *program) load(w word, next label) label {
	if w.mask != allBits {
		next = p.add(code{op: opAnd, k: w.mask, no: next})
	}
	return p.add(code{op: opLoad, k: w.offset, no: next})
}

// A span is a range of numbers with one outcome: from its first up to the next span of
// the list. The first span of a list begins at 0.
type span struct {
	from uint32
	then label
}

func spans(cases map[uint32]label, otherwise label) []span {
	list := []span{{0, otherwise}}
	for _, k := range slices.Sorted(maps.Keys(cases)) {
		list = appendSpan(list, span{k, cases[k]})
		if k < math.MaxUint32 {
			list = appendSpan(list, span{k + 1, otherwise})
		}
	}
	return list
}

// appendSpan replaces the last span if that has become empty, and extends it if the
// outcome is the same.
func appendSpan(list []span, s span) []span {
	if last := len(list) - 1; list[last].from == s.from {
		list = list[:last]
	}
	if last := len(list) - 1; last >= 0 && list[last].then == s.then {
		return list
	}
	return append(list, s)
}

// search finds the outcome for a word.
func (p *program) search(w word, list []span) label {
	switch {
	case len(list) == 1:
		return list[0].then
	case len(list) == 2 && list[1].from == 1 && w.mask != allBits: // JSET needs no instruction for the mask
		return p.load(word{w.offset, allBits}, p.test(unix.BPF_JSET, w.mask, list[1].then, list[0].then))
	}
	return p.load(w, p.find(list))
}

// find compares the loaded word by a balanced tree of comparisons. A single number between equal
// neighbours takes one comparison.
//
// It does not minimize the program: choosing where to compare numbers one by one would
// save a fifth of the instructions, and 20 µs of each load, under 1 % of a run.
func (p *program) find(list []span) label {
	switch {
	case len(list) == 1:
		return list[0].then
	case len(list) == 3 && list[2].from == list[1].from+1 && list[2].then == list[0].then:
		return p.test(unix.BPF_JEQ, list[1].from, list[1].then, list[0].then)
	}
	half := len(list) / 2
	above := p.find(list[half:])
	return p.test(unix.BPF_JGE, list[half].from, above, p.find(list[:half]))
}

// Filter is the filter for a set of restrictions. Callers share it and must not modify it.
type Filter struct {
	// Program is an array of struct sock_filter in the machine's byte order.
	Program []byte
	// Notify reports whether the program sends calls to a listener. If so, load it with
	// SECCOMP_FILTER_FLAG_NEW_LISTENER: without a listener such calls get ENOSYS.
	Notify bool

	refusals map[uint32][]Refusal // of the restrictions, by call number
}

// Compile returns the filter of Allowed and Denied with restrictions, for this machine's
// architecture. The restrictions' refusals take precedence over the tables. Several
// restrictions may have the same call, and apply in order; each call must be in a table.
// Their rows must not be modified later.
// With notify, labelled refusals go to the filter's listener instead of returning their
// errno.
//
// Filters are cached.
func Compile(restrictions []Row, notify bool) (*Filter, error) {
	return compiled.get(tables{Allowed, Denied, restrictions, notify})
}

var compiled = cache{filters: map[string]*Filter{}}

// maxFilters of some 3 kB each exceed the number of policies in a program.
const maxFilters = 32

// cache contains filters by the text of their restrictions.
type cache struct {
	mu      sync.Mutex
	filters map[string]*Filter
}

// get compiles one filter at a time, so that concurrent calls for the same filter share
// it.
func (c *cache) get(t tables) (*Filter, error) {
	key := fmt.Sprintf("%t %#v", t.notify, t.restrictions)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.filters[key]; f != nil {
		return f, nil
	}
	f, err := newFilter(t)
	if err != nil {
		return nil, err
	}
	if len(c.filters) == maxFilters {
		clear(c.filters) // which are in use is unknown
	}
	c.filters[key] = f
	return f, nil
}

func newFilter(t tables) (*Filter, error) {
	m, err := nativeMachine()
	if err != nil {
		return nil, err
	}
	p, err := compile(m, t)
	if err != nil {
		return nil, fmt.Errorf("seccomp: compile: %w", err)
	}
	f := &Filter{refusals: map[uint32][]Refusal{}}
	f.Program, _ = binary.Append(nil, binary.NativeEndian, p) // fails for other types only
	for name, list := range byName(t.restrictions) {
		if nr, exists := m.number(name); exists {
			f.refusals[nr] = list
			f.Notify = f.Notify || t.notify && slices.ContainsFunc(list, func(r Refusal) bool { return r.Label != "" })
		}
	}
	return f, nil
}

// Refusal returns the labelled refusal that applies to a call of this architecture. It
// returns false if none does; an unlabelled refusal or the tables may still refuse the
// call.
func (f *Filter) Refusal(nr int, args [6]uint64) (Refusal, bool) {
	for _, r := range f.refusals[uint32(nr)] {
		if r.matches(args) {
			return r, r.Label != ""
		}
	}
	return Refusal{}, false
}
