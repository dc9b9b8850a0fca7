package audit

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gaol/jail/landlock"
)

// Limits of a Reader's memory.
const (
	maxWaiting = 1024 // denials that are not claimed yet
	maxDomains = 4096 // domains of processes that are not watched are evicted first

	// retention is how long the records of a process that is not watched yet count, as its
	// watcher may learn the pid late. It is far shorter than the time until the kernel reuses
	// a pid.
	retention = 2 * time.Second
)

// Reader reads the kernel's records of Landlock and finds the process of each denial. The
// record of a denial has only its domain's number. Another record, which is sent once, holds
// the pid of the process that enforced the domain. It follows the first denial, and may have
// another serial number.
//
// It is safe for concurrent use.
type Reader struct {
	socket *nl.NetlinkSocket
	done   chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	watches map[int]*watch
	domains map[uint64]origin
	waiting []waiting // the oldest first
}

// origin is the process that enforced a domain.
type origin struct {
	pid int
	at  time.Time // of the record
}

// waiting is a denial whose process is unknown or not watched.
type waiting struct {
	Denial
	at time.Time
}

// watch is a call of Watch.
type watch struct {
	pid int

	mu sync.Mutex   // serializes calls of f
	f  func(Denial) // nil after stop
}

// deliver calls f. Precondition: w.mu is locked.
func (w *watch) deliver(list []Denial) {
	for _, d := range list {
		if w.f != nil {
			w.f(d)
		}
	}
}

// Open starts reading. Domains with an earlier denial remain unknown. The error is
// Available's error or an *os.SyscallError.
func Open() (*Reader, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	r := newReader()
	r.socket = s
	go r.run()
	return r, nil
}

func newReader() *Reader {
	return &Reader{done: make(chan struct{}), watches: map[int]*watch{}, domains: map[uint64]origin{}}
}

// Close stops reading. No watcher is called after it has returned.
func (r *Reader) Close() {
	r.socket.Close()
	<-r.done
}

// Watch calls f for each denial of a domain that the process with this pid, in the first
// pid namespace, has enforced. Before it returns it calls f for denials of the last two
// seconds. Denials arrive some milliseconds after they happen.
//
// While f runs, no other watcher is called, so f should return quickly. It must not call
// stop, Watch or Close. After stop has returned, f is not called any more. A later Watch of
// the same pid replaces this one.
func (r *Reader) Watch(pid int, f func(Denial)) (stop func()) {
	w := &watch{pid: pid, f: f}
	w.mu.Lock() // newer denials wait until the early ones are delivered
	defer w.mu.Unlock()
	w.deliver(r.watch(w, time.Now()))
	return func() { r.stop(w) }
}

// watch adds a watch and returns the waiting denials of its process. If it replaces a watch
// of the same pid, the kernel has reused the pid.
func (r *Reader) watch(w *watch, now time.Time) []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if r.watches[w.pid] != nil {
		r.forget(w.pid, now)
	} else {
		r.forget(w.pid, now.Add(-retention))
	}
	r.watches[w.pid] = w
	return r.claim(w)
}

func (r *Reader) stop(w *watch) {
	r.mu.Lock()
	if r.watches[w.pid] == w {
		delete(r.watches, w.pid)
		r.forget(w.pid, time.Now())
	}
	r.mu.Unlock()
	w.mu.Lock()
	w.f = nil
	w.mu.Unlock()
}

// forget removes the domains of a process that were recorded up to a time.
func (r *Reader) forget(pid int, until time.Time) {
	maps.DeleteFunc(r.domains, func(_ uint64, o origin) bool { return o.pid == pid && !o.at.After(until) })
}

func (r *Reader) run() {
	defer close(r.done)
	for {
		list, from, err := r.socket.Receive()
		switch {
		case err == unix.ENOBUFS: // lost records
		case err != nil: // closed
			return
		case from.Pid == nl.PidKernel:
			for _, m := range list {
				r.dispatch(m)
			}
		}
	}
}

func (r *Reader) dispatch(m syscall.NetlinkMessage) {
	if w, list := r.join(m, time.Now()); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.deliver(list)
	}
}

// join returns the denials that a record makes deliverable, and their watch. It ignores
// records that cannot be parsed.
func (r *Reader) join(m syscall.NetlinkMessage, now time.Time) (*watch, []Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	switch m.Header.Type {
	case unix.AUDIT_LANDLOCK_ACCESS:
		if d, err := parseDenial(string(m.Data)); err == nil {
			return r.addDenial(d, now)
		}
	case unix.AUDIT_LANDLOCK_DOMAIN:
		if d, err := parseDomain(string(m.Data)); err == nil {
			return r.addDomain(d, now)
		}
	}
	return nil, nil
}

func (r *Reader) addDenial(d Denial, now time.Time) (*watch, []Denial) {
	from, known := r.domains[d.Domain]
	d.PID = from.pid
	if w := r.watches[d.PID]; w != nil && known {
		return w, []Denial{d}
	}
	r.waiting = append(r.waiting, waiting{d, now})
	return nil, nil
}

// addDomain adds a domain. If its process is watched, it returns the waiting denials of the
// process.
func (r *Reader) addDomain(d domain, now time.Time) (*watch, []Denial) {
	if d.ended {
		delete(r.domains, d.id)
		return nil, nil
	}
	if len(r.domains) >= maxDomains {
		maps.DeleteFunc(r.domains, func(_ uint64, o origin) bool { return r.watches[o.pid] == nil })
	}
	if len(r.domains) < maxDomains {
		r.domains[d.id] = origin{d.pid, now}
	}
	for i := range r.waiting {
		if r.waiting[i].Domain == d.id {
			r.waiting[i].PID = d.pid
		}
	}
	w := r.watches[d.pid]
	if w == nil {
		return nil, nil
	}
	return w, r.claim(w)
}

// claim removes the waiting denials of a process and returns them.
func (r *Reader) claim(w *watch) (mine []Denial) {
	r.waiting = slices.DeleteFunc(r.waiting, func(d waiting) bool {
		if d.PID == w.pid {
			mine = append(mine, d.Denial)
		}
		return d.PID == w.pid
	})
	return mine
}

// expire drops old denials and those beyond the limit.
func (r *Reader) expire(now time.Time) {
	n := 0
	for n < len(r.waiting) && (now.Sub(r.waiting[n].at) > retention || len(r.waiting)-n >= maxWaiting) {
		n++
	}
	r.waiting = slices.Delete(r.waiting, 0, n)
}

// record maps the fields of a record to their values, as the kernel writes them:
// "audit(SECONDS.MILLIS:SERIAL): key=value ...". A text that a guest chose is in quotes, or in hex
// if it contains a quote, a blank or a non-ASCII character. So a blank always ends a value, and a
// guest can't forge a field.
type record map[string]string

// parseRecord parses a record of Landlock. All have the number of a domain.
func parseRecord(line string) (r record, domain uint64, err error) {
	r = record{}
	for word := range strings.SplitSeq(line, " ") {
		key, value, _ := strings.Cut(word, "=")
		r[key] = value
	}
	domain, err = strconv.ParseUint(r["domain"], 16, 64)
	return r, domain, err
}

// text returns the value of a field with a text, or "" if there is none.
func (r record) text(key string) (string, error) {
	if inner, quoted := strings.CutPrefix(r[key], `"`); quoted {
		return strings.TrimSuffix(inner, `"`), nil
	}
	decoded, err := hex.DecodeString(r[key])
	return string(decoded), err
}

// Denial is an operation that Landlock denied. Missing fields are zero.
type Denial struct {
	Domain uint64 // the kernel's number of the domain, unique until the next boot

	// PID is the process that enforced the domain, in the first pid namespace. The
	// operation was its own or a descendant's.
	PID int

	// Blockers are the missing rights: "fs.read_file", "fs.refer",
	// "fs.change_topology" for mounts, "net.connect_tcp", "scope.signal",
	// "ptrace".
	Blockers []string

	// Path is the file as the guest sees it, or the folder in which a file would be
	// created, removed or renamed. The guest chooses the text, which may contain control
	// characters.
	Path string

	// Address is the address to connect to. Either part may be missing.
	Address netip.AddrPort
}

func parseDenial(line string) (d Denial, err error) {
	r, id, err := parseRecord(line)
	if err != nil {
		return Denial{}, err
	}
	d.Domain, d.Blockers = id, strings.Split(r["blockers"], ",")
	path, err := r.text("path")
	name, nameErr := r.text("name")
	d.Path = cmp.Or(path, name)
	addr, _ := netip.ParseAddr(r["daddr"]) // the fields are missing unless the operation has an address
	port, _ := strconv.ParseUint(r["dest"], 10, 16)
	d.Address = netip.AddrPortFrom(addr, uint16(port))
	return d, cmp.Or(err, nameErr)
}

// domain is the record of a domain, which the kernel sends at its first denial and at its
// end.
type domain struct {
	id    uint64
	ended bool
	pid   int // of the process that enforced it; 0 if it ended
}

func parseDomain(line string) (d domain, err error) {
	r, id, err := parseRecord(line)
	if err != nil {
		return domain{}, err
	}
	if r["status"] == "deallocated" {
		return domain{id: id, ended: true}, nil
	}
	pid, err := strconv.ParseUint(r["pid"], 10, 31)
	return domain{id: id, pid: int(pid)}, err
}

// backlog is the size of the socket's buffer in bytes.
const backlog = 1 << 20

// openSocket opens a socket in the multicast group of audit's records, which does not disturb auditd.
func openSocket() (*nl.NetlinkSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_AUDIT, unix.AUDIT_NLGRP_READLOG)
	if err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	if s.SetReceiveBufferSize(backlog, true) != nil {
		_ = s.SetReceiveBufferSize(backlog, false) // without CAP_NET_ADMIN: up to the system's limit
	}
	if err := filter(s.GetFd()); err != nil {
		s.Close()
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return s, nil
}

// filter makes the kernel drop all records except Landlock's: audit sends further records
// with each denial, about the system call, and may send many others.
func filter(fd int) error {
	const kind = 4 // offset of the type in a netlink header
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: kind},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: loaded(unix.AUDIT_LANDLOCK_ACCESS)},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: loaded(unix.AUDIT_LANDLOCK_DOMAIN)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// loaded returns a number as a filter loads it, which assumes network byte order.
func loaded(kind uint16) uint32 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], kind)
	return uint32(binary.BigEndian.Uint16(b[:]))
}

// minABI is the first ABI with audit records.
const minABI = 7

// UnavailableError is the error if denials can't be reported.
type UnavailableError struct {
	Reason string
	Cure   string // advice for the administrator
	Err    error  // the cause; may be nil
}

// Error returns a text such as "audit: off; run auditctl -e 1, or boot with audit=1".
func (e *UnavailableError) Error() string {
	text := "audit: " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Cure
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Available returns nil if the kernel records denials and this process may read them, and
// an *UnavailableError otherwise. It changes no setting.
func Available() error {
	abi, err := landlock.ABI()
	if err == nil && abi < minABI {
		err = &landlock.ABIError{Have: abi, Need: minABI, Linux: landlock.Versions()[minABI-1].Linux, What: "audit"}
	}
	if err != nil {
		return &UnavailableError{"landlock does not record denials", "boot a kernel of version 6.15 or later", err}
	}
	switch on, err := enabled(); {
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return &UnavailableError{"not supported by this kernel", "boot a kernel with CONFIG_AUDIT=y", err}
	case err != nil:
		return &UnavailableError{"its state can't be read", "run as root with CAP_AUDIT_CONTROL, in the machine's own user and pid namespaces", err}
	case on == 0:
		return &UnavailableError{Reason: "off", Cure: "run auditctl -e 1, or boot with audit=1"}
	}
	// The kernel sends records to sockets of one network namespace, which no system call identifies. A process
	// that can read audit's state is in the first pid namespace, so pid 1 is the machine's first process.
	first, errFirst := os.Readlink("/proc/1/ns/net")
	own, errOwn := os.Readlink("/proc/thread-self/ns/net")
	if errFirst == nil && errOwn == nil && first != own {
		return &UnavailableError{Reason: "records reach the machine's own network namespace only", Cure: "run there, as docker run --network=host does"}
	}
	s, err := openSocket()
	if err != nil {
		return &UnavailableError{"its records can't be read", "run as root with CAP_AUDIT_READ", err}
	}
	s.Close()
	return nil
}

// enabled reads audit's state: 0 is off, 1 on, 2 on and locked until the next boot.
func enabled() (uint32, error) {
	reply, err := request(nl.NewNetlinkRequest(unix.AUDIT_GET, 0))
	if err != nil {
		return 0, err
	}
	if reply.Header.Type != unix.AUDIT_GET || len(reply.Data) < 8 {
		return 0, errors.New("audit_get: unexpected reply of the kernel")
	}
	return binary.NativeEndian.Uint32(reply.Data[4:]), nil // the second field of struct audit_status
}

// request sends a message to the kernel and returns the first reply.
func request(r *nl.NetlinkRequest) (reply syscall.NetlinkMessage, err error) {
	s, err := nl.Subscribe(unix.NETLINK_AUDIT)
	if err != nil {
		return reply, os.NewSyscallError("socket", err)
	}
	defer s.Close()
	timeout := unix.Timeval{Sec: 2} // ample: the kernel replies during Send
	if err := errors.Join(s.SetReceiveTimeout(&timeout), s.Send(r)); err != nil {
		return reply, os.NewSyscallError("sendto", err)
	}
	messages, _, err := s.Receive()
	if err != nil || len(messages) == 0 {
		return reply, os.NewSyscallError("recvfrom", err)
	}
	reply = messages[0]
	if reply.Header.Type == unix.NLMSG_ERROR && len(reply.Data) >= 4 {
		if code := int32(binary.NativeEndian.Uint32(reply.Data)); code != 0 { // 0 acknowledges
			err = syscall.Errno(-code)
		}
	}
	return reply, err
}
