package tenant

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/flags"
	"gaol/internal/kernfile"
	"gaol/internal/lazyregexp"
	"gaol/runtime"
)

// Tenant is a user or a program that uses the server. Sandboxes belong to a tenant.
type Tenant struct {
	// Name is "uid:N" for the local user N, or "token:NAME".
	Name string

	// Peer holds the caller's credentials, nil for tokens.
	Peer *Peer

	// Admin is true for root and for tokens with this right: they may read the metrics.
	Admin bool

	// Forwarded is true for a request that another node of the fleet has forwarded: it is served here.
	Forwarded bool
	Hops      int // how often
}

// Peer holds the credentials that a process had when it connected.
type Peer struct {
	PID int32
	runtime.MountUser
}

type contextKey struct{}

// NewContext returns a context with the tenant of a request.
func NewContext(ctx context.Context, t *Tenant) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the tenant of a request. It panics without one: every request has one.
func FromContext(ctx context.Context) *Tenant { return ctx.Value(contextKey{}).(*Tenant) }

// Lookup returns the tenant of a request, nil for requests without a tenant.
func Lookup(ctx context.Context) *Tenant {
	t, _ := ctx.Value(contextKey{}).(*Tenant)
	return t
}

// OfConn returns the tenant at the other end of a unix socket: the user that the process had when
// it connected.
func OfConn(c *net.UnixConn) (*Tenant, error) {
	var p *Peer
	err := kernfile.Control(c, func(fd int) (err error) {
		p, err = peerOf(fd)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("credentials of the peer: %w", err)
	}
	return &Tenant{Name: fmt.Sprintf("uid:%d", p.UID), Peer: p, Admin: p.UID == 0}, nil
}

// overflow is the user id of a peer whose user is not mapped in this user namespace.
const overflow = 65534

func peerOf(fd int) (*Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	if cred.Uid == overflow {
		return nil, fmt.Errorf("user %d may be any user of another user namespace", cred.Uid)
	}
	groups, err := peerGroups(fd)
	return &Peer{cred.Pid, runtime.MountUser{UID: int(cred.Uid), GID: int(cred.Gid), Groups: groups}}, err
}

// maxGroups is NGROUPS_MAX.
const maxGroups = 65536

// peerGroups returns the supplementary groups of a peer (SO_PEERGROUPS).
func peerGroups(fd int) ([]int, error) {
	size := 64 * 4
	for {
		buf := make([]byte, size)
		n, err := getsockopt(fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS, buf)
		if err == unix.ERANGE && n > size && n <= 4*maxGroups {
			size = n
			continue
		}
		if err != nil {
			return nil, err
		}
		groups := make([]int, n/4)
		for i := range groups {
			groups[i] = int(binary.NativeEndian.Uint32(buf[4*i:]))
		}
		return groups, nil
	}
}

// Tokens are the bearer tokens that a server accepts.
type Tokens struct{ list []token }

type token struct {
	name  string
	hash  [sha256.Size]byte
	admin bool
}

const (
	maxTokenFile = 1 << 20
	minToken     = 32  // characters
	maxToken     = 256 // characters
)

var tokenName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// ReadTokens reads a file with one token on each line: its name, the SHA-256 of the token in
// hexadecimal, and "admin" for permission to read metrics. Empty lines and lines that begin with #
// are ignored. The file must belong to root or the server's user, and only its owner may be able to write
// to it. Users outside its group may not read it.
func ReadTokens(path string) (*Tokens, error) {
	var t *Tokens
	text, err := flags.ReadFile(path, maxTokenFile, CheckSecret)
	if err == nil {
		t, err = parseTokens(string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %s: %w", path, err)
	}
	return t, nil
}

// CheckSecret rejects a file that others can read.
func CheckSecret(info fs.FileInfo) error {
	if info.Mode().Perm()&0o027 != 0 {
		return fmt.Errorf("want a file with mode 0640 or less, not %v", info.Mode())
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d", uid)
	}
	return nil
}

func parseTokens(text string) (*Tokens, error) {
	t := &Tokens{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parsed, err := parseToken(line)
		if err == nil && slices.ContainsFunc(t.list, func(other token) bool { return other.name == parsed.name }) {
			err = fmt.Errorf("%s is listed twice", parsed.name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		t.list = append(t.list, parsed)
	}
	if len(t.list) == 0 {
		return nil, errors.New("no tokens")
	}
	return t, nil
}

func parseToken(line string) (t token, err error) {
	fields := strings.Fields(line)
	if len(fields) == 3 && fields[2] == "admin" {
		t.admin, fields = true, fields[:2]
	}
	if len(fields) != 2 {
		return t, errors.New("want NAME SHA256 [admin]")
	}
	t.name = fields[0]
	if !tokenName().MatchString(t.name) {
		return t, fmt.Errorf("name %q: want lower-case letters, digits and ._-", t.name)
	}
	hash, err := hex.DecodeString(fields[1])
	if err != nil || len(hash) != sha256.Size {
		return t, fmt.Errorf("%s: want the SHA-256 of the token, 64 hexadecimal digits", t.name)
	}
	t.hash = [sha256.Size]byte(hash)
	return t, nil
}

// Knows reports whether a tenant can exist: it has a token or is a local user, or t is nil, so that tokens are unknown here.
func (t *Tokens) Knows(tenant string) bool {
	name, hasToken := strings.CutPrefix(tenant, tokenPrefix)
	return t == nil || !hasToken || slices.ContainsFunc(t.list, func(known token) bool { return known.name == name })
}

// tokenPrefix begins the names of tenants with tokens.
const tokenPrefix = "token:"

// Find returns the tenant of a token, nil if there is none. It takes the same time for all
// tokens of one length.
func (t *Tokens) Find(secret string) *Tenant {
	if len(secret) < minToken || len(secret) > maxToken {
		return nil
	}
	hash := sha256.Sum256([]byte(secret))
	var found *token
	for i := range t.list {
		if subtle.ConstantTimeCompare(hash[:], t.list[i].hash[:]) == 1 {
			found = &t.list[i]
		}
	}
	if found == nil {
		return nil
	}
	return &Tenant{Name: tokenPrefix + found.name, Admin: found.admin}
}

// CreateToken adds a token to a file, and returns it: the file has its hash only. A missing file is made, with mode 0600.
// A name that is in the file is an error.
func CreateToken(path, name string, admin bool) (secret string, err error) {
	if !tokenName().MatchString(name) {
		return "", fmt.Errorf("tokens: %s: %q is not a valid name: want lower-case letters, digits and ._-", path, name)
	}
	secret = rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	line := name + " " + hex.EncodeToString(hash[:])
	if admin {
		line += " admin"
	}
	if err := appendToken(path, line+"\n"); err != nil {
		return "", fmt.Errorf("tokens: %s: %w", path, err)
	}
	return secret, nil
}

// appendToken appends the line of a token to a file, which it makes if it is missing.
func appendToken(path, line string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // others that add a token
		return os.NewSyscallError("flock", err)
	}
	text, err := flags.ReadFile(path, maxTokenFile, nil)
	if err != nil {
		return err
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		line = "\n" + line
	}
	if _, err := parseTokens(string(text) + line); err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		return errors.Join(err, f.Truncate(int64(len(text)))) // a part of a line would make the file invalid
	}
	return f.Sync()
}
