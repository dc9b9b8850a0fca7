package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

// Entry is a line of the log. Durations are in milliseconds.
type Entry struct {
	Time   time.Time `json:"time"` // of the request's end
	Tenant string    `json:"tenant"`
	PID    int32     `json:"pid,omitempty"` // of the process that has connected, unless by TCP
	UID    *int      `json:"uid,omitempty"`

	Gateway string `json:"gateway,omitempty"` // the node of a fleet that has forwarded the request

	Action  string `json:"action"` // the method and the pattern of the path, or the name of a tool
	Sandbox string `json:"sandbox,omitempty"`

	// Code is the SHA-256 of the program or snippet. For a command it is that of its name
	// and arguments, each followed by a zero byte.
	Code        string          `json:"codeSha256,omitempty"`
	Permissions json.RawMessage `json:"permissions,omitempty"` // as requested

	Cause    *runtime.Cause        `json:"cause,omitempty"` // of a run; "" if its program exited
	ExitCode *int                  `json:"exitCode,omitempty"`
	Denials  []runtime.Denial      `json:"denials,omitempty"`
	Network  *runtime.NetworkUsage `json:"network,omitempty"` // of a run that used external hosts

	BytesIn    int64   `json:"bytesIn"`  // of the request's body
	BytesOut   int64   `json:"bytesOut"` // of the response's body
	DurationMs float64 `json:"durationMs"`
	Status     int     `json:"status"` // of HTTP
}

// maxPermissions bounds the permissions of one line, in bytes. For longer ones the line has their
// hash.
const maxPermissions = 16 << 10

// Record collects the fields of one action. A nil *Record ignores everything, so that callers
// need not know if there is a log.
type Record struct {
	write func(Entry)
	start time.Time

	mu    sync.Mutex
	entry Entry
}

type contextKey struct{}

// NewContext returns a context with a new record, which is written with write.
func NewContext(ctx context.Context, write func(Entry)) (context.Context, *Record) {
	r := &Record{write: write, start: time.Now()}
	return context.WithValue(ctx, contextKey{}, r), r
}

// Of returns the record of a context, nil if there is none.
func Of(ctx context.Context) *Record {
	r, _ := ctx.Value(contextKey{}).(*Record)
	return r
}

// Attach returns a context with the record, for work whose context is not the request's.
func (r *Record) Attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// Begin returns a context with a separate record for one of several actions of a request, such as
// a message on a WebSocket. The record keeps the request's tenant. End writes it.
func Begin(ctx context.Context, action string) (_ context.Context, end func(status int)) {
	parent := Of(ctx)
	if parent == nil {
		return ctx, func(int) {}
	}
	ctx, r := NewContext(ctx, parent.write)
	from := parent.Entry()
	r.entry = Entry{Tenant: from.Tenant, PID: from.PID, UID: from.UID, Gateway: from.Gateway, Sandbox: from.Sandbox, Action: action}
	return ctx, r.End
}

// SetTenant sets the tenant that acts.
func (r *Record) SetTenant(t *tenant.Tenant) {
	r.Update(func(e *Entry) {
		e.Tenant = t.Name
		if p := t.Peer; p != nil {
			e.PID, e.UID = p.PID, &p.UID
		}
	})
}

// End writes the line.
func (r *Record) End(status int) {
	if r == nil {
		return
	}
	now := time.Now()
	r.Update(func(e *Entry) {
		e.Time, e.Status, e.DurationMs = now, status, float64(now.Sub(r.start).Microseconds())/1000
	})
	r.write(r.Entry())
}

// Update calls change with the entry, and then is its only user.
func (r *Record) Update(change func(*Entry)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.entry)
}

// Entry returns a copy of the entry.
func (r *Record) Entry() Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

// SetAction replaces the name of the action.
func (r *Record) SetAction(name string) { r.Update(func(e *Entry) { e.Action = name }) }

// SetSandbox sets the sandbox of the action.
func (r *Record) SetSandbox(id string) { r.Update(func(e *Entry) { e.Sandbox = id }) }

// SetCode sets the hash of a program or snippet, and its permissions: see [Record.SetPermissions].
func (r *Record) SetCode(code string, permissions any) {
	r.Update(func(e *Entry) { e.Code = hash(code) })
	r.SetPermissions(permissions)
}

// SetCommand sets the hash of a command, and its permissions.
func (r *Record) SetCommand(name string, args []string, permissions any) {
	r.SetCode(strings.Join(append([]string{name}, args...), "\x00")+"\x00", permissions)
}

func hash(text string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

// SetPermissions sets the permissions that the request asked for: by scope, or the name of a preset. Nil and those without
// a scope change nothing.
func (r *Record) SetPermissions(p any) {
	r.Update(func(e *Entry) {
		text, _ := json.Marshal(p) // which has been parsed
		if string(text) == "{}" || string(text) == "null" {
			return
		}
		if len(text) > maxPermissions {
			text, _ = json.Marshal(map[string]string{"sha256": hash(string(text))})
		}
		e.Permissions = text
	})
}

// SetEnd sets how a run ended. Snippets have no exit code.
func (r *Record) SetEnd(code *int, cause runtime.Cause, denials []runtime.Denial, u runtime.Usage) {
	r.Update(func(e *Entry) {
		e.ExitCode, e.Cause, e.Denials = code, &cause, denials
		if u.Network != (runtime.NetworkUsage{}) {
			e.Network = &u.Network
		}
	})
}

// Open opens a file for a [Log], or creates it for its owner only. It must be a regular file that other users
// may neither read nor write; its group may read it.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o037 != 0) {
		err = fmt.Errorf("%s: want a file with mode 0640 or less, not %v", path, info.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return f, nil
}

// Log is an audit log. The zero value writes nothing. Its methods may be called
// concurrently.
type Log struct {
	mu   sync.Mutex
	file *os.File
	torn bool // the last line is incomplete: the disk was full
}

// Set replaces the file and closes the previous one. The log owns f, which may be nil.
func (l *Log) Set(f *os.File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file
	l.file, l.torn = f, false
	if old == nil {
		return nil
	}
	return old.Close()
}

// Enabled reports whether the log writes to a file.
func (l *Log) Enabled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil
}

// Write appends a line.
func (l *Log) Write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(append(line, '\n'))
	if n > 0 {
		l.torn = n <= len(line)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}
