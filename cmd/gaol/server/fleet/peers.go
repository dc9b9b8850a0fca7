package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// Paths of the listener for nodes.
const (
	pingPath  = "/fleet/v1/ping"
	joinPath  = "/fleet/v1/join" // needs no certificate
	renewPath = "/fleet/v1/renew"
	drainPath = "/fleet/v1/drain"
	keepsPath = "/fleet/v1/keeps"
	blobsPath = "/fleet/v1/blobs/"
	pullPath  = "/fleet/v1/pull"
	adoptPath = "/fleet/v1/adopt"

	enginePath = "/fleet/v1/engine"
)

// joinRequest asks for a certificate: the first one by a secret, others by the former certificate.
type joinRequest struct {
	Secret  string `json:"secret,omitempty"`
	Request []byte `json:"request"` // see [identity.Request]
}

// joinResponse contains the certificate.
type joinResponse struct {
	Certificate []byte   `json:"certificate"`
	EngineToken string   `json:"engineToken"`
	Engines     []string `json:"engines"`

	Generation generation `json:"generation"`
}

const (
	maxMessage  = 64 << 10 // of a request or a response between nodes, in bytes
	callTimeout = 10 * time.Second
	dialTimeout = 2 * time.Second // of a node that may hang

	// tokenLife is how long a join token is valid.
	tokenLife = 24 * time.Hour
)

// hashOf returns the key of a join token's secret in the engine.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return "join." + hex.EncodeToString(sum[:])
}

func (f *Fleet) storeToken(ctx context.Context, t identity.Token) error {
	if f.External.URLs != "" {
		return service.Refuse(service.Invalid, "machines do not join this fleet: start them with its --fleet-engine and --fleet-authority")
	}
	return f.client.Create(ctx, engine.Config, hashOf(t.Secret), []byte(f.ID()), tokenLife)
}

// callHeader marks requests of the node itself. Forward removes it from requests of clients, whose paths are arbitrary.
const callHeader = "Gaol-Fleet-Call"

// NodeHandler serves other nodes, and machines that want to join. Forwarded serves requests of tenants that other nodes have
// forwarded.
func (f *Fleet) NodeHandler(forwarded http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pingPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+renewPath, f.serveCertificate)
	mux.HandleFunc("POST "+drainPath, func(_ http.ResponseWriter, r *http.Request) {
		f.Member().Drain(r.URL.Query().Get("off") == "")
	})
	mux.HandleFunc("GET "+keepsPath, f.serveKeeps)
	mux.HandleFunc("GET "+blobsPath+"{kind}/{id}", f.serveBlob)
	mux.HandleFunc("POST "+pullPath, f.servePull)
	mux.HandleFunc("POST "+adoptPath, f.serveAdopt)
	mux.HandleFunc("GET "+enginePath, func(w http.ResponseWriter, _ *http.Request) { respond(w, f.generation(), nil) })
	mux.HandleFunc("POST "+enginePath, f.servePromotion)
	mux.HandleFunc("/", forwarded)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identity.Peer(r.TLS)
		own := r.Header.Get(callHeader) != ""
		switch {
		case own && r.URL.Path == joinPath && r.Method == http.MethodPost:
			f.serveCertificate(w, r)
		case id == "":
			api.WriteProblem(w, http.StatusForbidden, "only nodes of the fleet may connect here")
		case f.Member().IsDead(id) && r.URL.Path != renewPath:
			w.Header().Set("Connection", "close") // the node may have another id now
			// Its clients can repeat their requests.
			refusals := map[bool]error{true: service.Refuse(service.Forbidden, "the node is dead"), false: errUnreachable}
			api.ProblemOf(refusals[own]).Write(w)
		case !own:
			forwarded(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// serveCertificate signs the request of a machine that joins, or of a node whose certificate is going to expire. A node that is dead
// gets a new id, unless it was removed. Nodes without the authority forward the request to an engine.
func (f *Fleet) serveCertificate(w http.ResponseWriter, r *http.Request) {
	var in joinRequest
	var out joinResponse
	err := receive(w, r, maxMessage, &in)
	switch {
	case err != nil:
	case r.URL.Path == joinPath:
		err = f.admit(r.Context(), identity.Peer(r.TLS), in, &out)
	default:
		err = f.sign(r.Context(), identity.Peer(r.TLS), in.Request, &out)
	}
	respond(w, out, err)
}

// admit signs the request of a machine with a join token, which may be forwarded by a peer.
func (f *Fleet) admit(ctx context.Context, peer string, in joinRequest, out *joinResponse) error {
	if f.authority.Load() == nil && peer != "" {
		return engine.ErrUnavailable
	} else if f.authority.Load() == nil {
		return f.callEngines(ctx, http.MethodPost, joinPath, in, out)
	}
	_, _, err := f.client.Get(ctx, engine.Config, hashOf(in.Secret))
	if errors.Is(err, engine.ErrNotFound) {
		return service.Refuse(service.Forbidden, "the join token is unknown or has expired")
	} else if err != nil {
		return engine.ErrUnavailable
	}
	return f.certifyNode(in.Request, identity.NewID(), out)
}

// sign signs the request of a node.
func (f *Fleet) sign(ctx context.Context, peer string, request []byte, out *joinResponse) error {
	if f.authority.Load() == nil {
		return service.Refuse(service.Invalid, "this node does not have the authority")
	}
	grave, err := f.Member().Grave(ctx, peer)
	switch {
	case err != nil:
		return engine.ErrUnavailable
	case grave != nil && grave.Removed:
		return service.Refuse(service.Forbidden, "the node was removed: it can join with a new token")
	case grave != nil:
		peer = identity.NewID()
	}
	return f.certifyNode(request, peer, out)
}

// certifyNode signs a request for a node.
func (f *Fleet) certifyNode(request []byte, id string, out *joinResponse) error {
	authority := f.authority.Load()
	if authority == nil { // it has just lost its engine
		return engine.ErrUnavailable
	}
	cert, err := authority.Sign(request, id)
	if err != nil {
		return service.Refuse(service.Invalid, "%w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	*out = joinResponse{cert.Raw, f.state.EngineToken, append([]string{f.Address}, f.state.Engines...), f.state.Generation}
	return nil
}

// join makes this machine a node of the fleet of another one, unless it is one.
func (f *Fleet) join(ctx context.Context) error {
	node, err := identity.ReadNode(f.Dir)
	_, expired := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case err == nil:
		f.node.Store(node)
		return nil
	case !errors.Is(err, fs.ErrNotExist) && !expired:
		return err
	case f.Token == "" && expired:
		return errors.New("this machine was off for longer than its certificate is valid: give it a new --join-token of gaol fleet token")
	case f.Token == "":
		return errors.New("--join needs a --join-token of gaol fleet token")
	}
	token, err := identity.ParseToken(f.Token)
	if err != nil {
		return err
	}
	request, err := identity.NewRequest()
	if err != nil {
		return err
	}
	config, ca := token.Join()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: callTimeout}
	defer client.CloseIdleConnections()
	var out joinResponse
	err = send(ctx, client, http.MethodPost, f.Join+joinPath, "", joinRequest{token.Secret, request.DER}, into(&out, maxMessage))
	if err = cmp.Or(err, out.Generation.check()); err != nil {
		return fmt.Errorf("join %s: %w", f.Join, err)
	}
	if node, err = identity.NewNode(f.Dir, request, out.Certificate, ca()); err != nil {
		return err
	}
	f.node.Store(node)
	f.state.EngineToken, f.state.Engines, f.state.Generation = out.EngineToken, out.Engines, out.Generation
	return f.writeState()
}

// renew renews the node's certificate after half of its life, until ctx ends.
func (f *Fleet) renew(ctx context.Context) {
	for engine.Sleep(ctx, max(time.Until(f.node.Load().RenewAt()), retryEvery)) {
		if time.Now().Before(f.node.Load().RenewAt()) {
			continue // it was renewed meanwhile
		}
		if err := f.renewOnce(ctx); err != nil {
			f.Log.Error("renew the node's certificate", "err", err)
			engine.Sleep(ctx, time.Minute)
		}
	}
}

// renewOnce gets a new certificate: with a new id, if the node is dead.
func (f *Fleet) renewOnce(ctx context.Context) error {
	request, err := identity.NewRequest()
	if err != nil {
		return err
	}
	var out joinResponse
	failed := f.callEngines(ctx, http.MethodPost, renewPath, joinRequest{Request: request.DER}, &out) // the own one may be isolated
	if failed != nil && !hasCode(failed, service.Forbidden) && f.authority.Load() != nil {
		failed = f.sign(ctx, f.ID(), request.DER, &out)
	}
	if failed != nil {
		return failed
	}
	next, err := identity.NewNode(f.Dir, request, out.Certificate, f.node.Load().CA)
	if err == nil { // a server that was replaced ends before the others accept the node again
		err = f.useGeneration(out.Generation)
	}
	if err == nil {
		f.node.Store(next)
	}
	return err
}

// transport returns a transport for https://NODE, whose name is verified.
func (f *Fleet) transport() *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true, ForceAttemptHTTP2: false,
		ResponseHeaderTimeout: 0, // a run may take an hour
	}
	t.DialTLSContext = func(ctx context.Context, _, host string) (net.Conn, error) {
		id, port, err := net.SplitHostPort(host)
		if err != nil {
			return nil, err
		}
		n := f.Member().Get(id)
		if n.Address == "" {
			return nil, &dialError{member.ErrDead}
		}
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		c, err := (&tls.Dialer{Config: f.node.Load().Client(id, "http/1.1")}).DialContext(ctx, "tcp", n.Address)
		if err != nil {
			return nil, &dialError{err}
		}
		tcp := c.(*tls.Conn).NetConn().(*net.TCPConn)
		if port == eventsPort {
			_ = tcp.SetReadBuffer(EventsBuffer)
		}
		return &peerConn{c, tcp, f.Member().Alive(id)}, nil
	}
	return t
}

// peerConn is a connection to a node.
type peerConn struct {
	net.Conn
	tcp   *net.TCPConn
	alive context.Context // the node
}

// Close implements [net.Conn]. If the node was lost, it discards unsent data, so that a request that has failed is not performed when
// the network comes back.
func (c *peerConn) Close() error {
	if c.alive.Err() != nil {
		_ = c.tcp.SetLinger(0) // it may be closed
	}
	return c.Conn.Close()
}

// dialError is the error of a request that was not sent.
type dialError struct{ error }

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.error }

// call sends a request to a node, and decodes its response.
func (f *Fleet) call(ctx context.Context, method, id, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return send(ctx, f.http, method, id+path, "", in, into(out, maxMessage))
}

// callAs sends a request of a tenant to a node, and lets read read the response, until the node is lost.
func (f *Fleet) callAs(ctx context.Context, t *tenant.Tenant, method, node, path string, in any, read func(io.Reader) error) error {
	ctx, cancel := f.Member().While(ctx, node)
	defer cancel()
	return send(ctx, f.http, method, node+path, f.NameOf(t), in, read)
}

// into returns a function that reads an object of at most some bytes. Without out it ignores the object.
func into(out any, most int64) func(io.Reader) error {
	return func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, most))
		if err != nil || out == nil {
			return err
		}
		return json.Unmarshal(text, out)
	}
}

// send sends a request with an object, unless that is nil, and lets read read the response. A response with another status than 2xx
// is an error.
func send(ctx context.Context, c *http.Client, method, url, tenant string, in any, read func(io.Reader) error) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+url, body)
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, callHeader: {"1"}, requestHeader: {service.RequestOf(ctx)}}
	if tenant != "" {
		r.Header.Set(tenantHeader, tenant)
	}
	res, err := c.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < http.StatusMultipleChoices {
		return read(res.Body)
	}
	var p api.Problem
	if into(&p, maxMessage)(res.Body) == nil && p.Code != "" {
		return &service.Error{Code: p.Code, Err: &p}
	}
	return errors.New(res.Status)
}
