package egress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"gaol/policy"
)

// A message, however odd, gets an answer that can be packed, and no look-up that the rules
// deny.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"a.test.", "localhost.", "1.0.18.198.in-addr.arpa.", "\\000.test."} {
		b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q := new(dns.Msg)
		if q.Unpack(b) != nil {
			return
		}
		client := NewClient(&policy.Egress{}, Limits{}, nil, Observer{})
		s := NewServer(Config{
			Identify: func(string, netip.AddrPort, netip.AddrPort) *Client { return client },
			Resolver: &net.Resolver{PreferGo: true, Dial: nil},
		})
		defer s.Close()
		w := &replyWriter{}
		s.answer(w, q)
		if w.reply == nil || w.reply.Id != q.Id {
			t.Fatalf("no answer to %v", q)
		}
		if _, err := w.reply.Pack(); err != nil {
			t.Errorf("%v: %v", q, err)
		}
	})
}

type replyWriter struct {
	dns.ResponseWriter
	reply *dns.Msg
}

func (w *replyWriter) WriteMsg(m *dns.Msg) error { w.reply = m; return nil }
func (w *replyWriter) RemoteAddr() net.Addr      { return &net.UDPAddr{} }
func (w *replyWriter) LocalAddr() net.Addr       { return &net.UDPAddr{} }
