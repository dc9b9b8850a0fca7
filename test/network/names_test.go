package network

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"gaol/runtime"
)

// aliases are the CNAME records of the test.
var aliases = map[string]string{
	"to-public.test": "other.test", "to-private.test": "private.test", "to-metadata.test": "metadata.test", "to-loopback.test": "loopback.test", "to-localhost.test": "localhost",
	"to-nothing.test": "nothing.test", "loop.test": "pool.test", "pool.test": "loop.test", "itself.test": "itself.test",
	"chain1.test": "chain2.test", "chain2.test": "chain3.test", "chain3.test": "chain4.test", "chain4.test": "other.test",
	"trail1.test": "trail2.test", "trail2.test": "trail3.test", "trail3.test": "private.test",
	"denied.test": "api.example.com", "_sip.test": "api.example.com",
}

const leadRules = `{"rules":[{"mode":"allow","patterns":["tcp://*:80"]},{"mode":"deny","patterns":["tcp://denied.test:*","tcp://chain3.test:*","tcp://www.example.com:*"]}]}`

// leads are URLs that are fetched in this order, with the results.
var leads = []struct{ url, result string }{
	{"http://both.test/", "served"},  // by the public address
	{"http://both6.test/", "served"}, //
	{"http://all-private.test/", "refused"},
	{"http://to-public.test/", "served"},
	{"http://to-private.test/", "refused"},
	{"http://to-metadata.test/", "refused"},
	{"http://to-loopback.test/", "refused"},
	{"http://to-localhost.test/", "refused"},
	{"http://to-nothing.test/", "ENOTFOUND"},
	{"http://loop.test/", "EAI_AGAIN"},
	{"http://itself.test/", "EAI_AGAIN"},
	{"http://chain1.test/", "served"}, // a rule is about the name that the guest looks up
	{"http://chain3.test/", "EAI_AGAIN"},
	{"http://trail1.test/", "refused"},
	{"http://denied.test/", "EAI_AGAIN"},
	{"http://DENIED.test./", "EAI_AGAIN"},
	{"http://93.184.215.14/", "refused"}, // which could be denied.test's
	{"http://rebind.test/", "served"},
	{"http://api.example.com/?rebind=rebind.test&address=10.1.2.3", "served"},
	{"http://rebind.test/again", "refused"},
	{"http://api.example.com/?rebind=rebind.test&address=127.0.0.1", "served"},
	{"http://rebind.test/loopback", "refused"},
	{"http://api.example.com/?rebind=rebind.test&address=93.184.215.14", "served"},
	{"http://rebind.test/back", "served"},
	{"http://back.test/", "refused"},
	{"http://api.example.com/?rebind=back.test&address=93.184.215.14", "served"},
	{"http://back.test/now", "served"},
	{"http://api.example.com/?to=http://other.test/", "served"},
	{"http://api.example.com/?to=http://private.test/", "refused"},
	{"http://api.example.com/?to=http://10.1.2.3/", "refused"},
	{"http://api.example.com/?to=http://0xa010203/", "refused"},
	{"http://api.example.com/?to=http://169.254.169.254/", "refused"},
	{"http://api.example.com/?to=http://[::ffff:169.254.169.254]/", "refused"},
	{"http://api.example.com/?to=http://127.0.0.1/", "ECONNREFUSED"},
	{"http://api.example.com/?to=http://denied.test/", "EAI_AGAIN"},
	{"http://api.example.com/?to=//10.1.2.3/", "refused"},
	{"http://api.example.com/?to=http://api.example.com:81/", "refused"},
	{"http://api.example.com/?to=https://other.test/", "refused"},
}

// The address of a name is decided when the guest connects, whatever it was before, and
// whichever names lead there.
func TestNamesThatLeadElsewhere(t *testing.T) {
	in := serveInternet(t)
	in.Set("both.test", private, publicV4)
	in.Set("both6.test", netip.MustParseAddr("fd00::80"), publicV4)
	in.Set("all-private.test", private, metadata, netip.MustParseAddr("::ffff:10.1.2.3"))
	in.Set("rebind.test", publicV4)
	in.Set("back.test", private)
	for alias, target := range aliases {
		in.Alias(alias, target)
	}
	in.Set("localhost", netip.MustParseAddr("127.0.0.1"))
	eachLauncher(t, leadRules, func(t *testing.T, rt *runtime.NodeRuntime) {
		in.Set("rebind.test", publicV4)
		in.Set("back.test", private)
		in.forget()
		var urls []string
		for _, w := range leads {
			urls = append(urls, w.url)
		}
		got, _ := attempts(t, rt, fetching, urls...)
		for _, w := range leads {
			if !isResult(got[w.url], w.result) && !(w.result == "served" && isServed(got[w.url])) {
				t.Errorf("%s: %q, want %s", w.url, got[w.url], w.result)
			}
		}
		in.checkReached(t, publicV4, publicV6, otherV4)
	})
	if n := in.Asked("denied.test") + in.Asked("www.example.com"); n != 0 {
		t.Errorf("%d questions about denied names left the sandbox", n)
	}
}

// An address that the guest got before the name changed is checked, too.
func TestRebindingBetweenLookUpAndConnect(t *testing.T) {
	in := serveInternet(t)
	const code = `
import dns from 'node:dns/promises';
const got = {};
const tell = address => fetch('http://api.example.com/?rebind=rebind.test&address=' + address).then(r => r.text());
await tell('93.184.215.14');
const [v4] = await dns.resolve4('rebind.test');
for (const address of ['93.184.215.14', '10.1.2.3', '169.254.169.254', '127.0.0.1', '::1', '64:ff9b::a01:203', '192.0.2.1', '93.184.215.14']) {
	await tell(address);
	try {
		got[address] = await (await fetch('http://' + v4, { headers: { connection: 'close' } })).text();
	} catch (err) {
		got[address] = err.cause.code;
	}
}
__return(got);`
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		in.forget()
		got, _ := attempts(t, rt, code)
		for address, result := range got {
			if address == publicV4.String() && !isServed(result) || address != publicV4.String() && !isResult(result, "refused") {
				t.Errorf("%s: %q", address, result)
			}
		}
		if len(got) != 7 {
			t.Errorf("got %v", got)
		}
		in.checkReached(t, publicV4, publicV6)
	})
}

// question makes a message with one question.
func question(name string, qtype uint16, change func(*dns.Msg)) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	if change != nil {
		change(m)
	}
	return m
}

// questions are messages to the resolver, with the code of the reply; -1 for none.
var questions = []struct {
	name  string
	m     *dns.Msg
	rcode int
}{
	{"allowed", question("api.example.com.", dns.TypeA, nil), dns.RcodeSuccess},
	{"allowed in mixed case", question("aPi.ExAmPlE.cOm.", dns.TypeA, nil), dns.RcodeSuccess},
	{"allowed with a client's subnet", question("api.example.com.", dns.TypeA, func(m *dns.Msg) {
		m.Extra = []dns.RR{&dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: 65535}, Option: []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 32, Address: private.AsSlice()}}}}
	}), dns.RcodeSuccess},
	{"all records", question("api.example.com.", dns.TypeANY, nil), dns.RcodeSuccess},
	{"HTTPS", question("api.example.com.", dns.TypeHTTPS, nil), dns.RcodeSuccess},
	{"denied", question("other.test.", dns.TypeA, nil), dns.RcodeRefused},
	{"denied in mixed case", question("OTHER.test.", dns.TypeAAAA, nil), dns.RcodeRefused},
	{"denied, all records", question("other.test.", dns.TypeANY, nil), dns.RcodeRefused},
	{"denied, text", question("data.other.test.", dns.TypeTXT, nil), dns.RcodeRefused},
	{"denied, zone transfer", question("other.test.", dns.TypeAXFR, nil), dns.RcodeRefused},
	{"denied, key", question("other.test.", dns.TypeDNSKEY, nil), dns.RcodeRefused},
	{"below an allowed name", question("data.api.example.com.", dns.TypeTXT, nil), dns.RcodeRefused},
	{"above an allowed name", question("example.com.", dns.TypeNS, nil), dns.RcodeRefused},
	{"root", question(".", dns.TypeNS, nil), dns.RcodeNameError},
	{"number", question("127.1.", dns.TypeA, nil), dns.RcodeNameError},
	{"address", question("93.184.215.14.", dns.TypeA, nil), dns.RcodeNameError},
	{"hexadecimal", question("0x7f000001.", dns.TypeA, nil), dns.RcodeNameError},
	{"bytes", question("a\\000b.other.test.", dns.TypeA, nil), dns.RcodeNameError},
	{"a dot within a label", question("data\\.api.example.com.", dns.TypeA, nil), dns.RcodeNameError},
	{"wildcard", question("*.example.com.", dns.TypeA, nil), dns.RcodeNameError},
	{"reverse look-up", question("14.215.184.93.in-addr.arpa.", dns.TypePTR, nil), dns.RcodeNameError},
	{"chaos class", question("version.bind.", dns.TypeTXT, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
	{"any class", question("other.test.", dns.TypeA, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }), dns.RcodeRefused},
	{"two questions", question("api.example.com.", dns.TypeA, func(m *dns.Msg) {
		m.Question = append(m.Question, dns.Question{Name: "other.test.", Qtype: dns.TypeA, Qclass: dns.ClassINET})
	}), dns.RcodeFormatError},
	{"notification", question("other.test.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), dns.RcodeNotImplemented},
	{"update", question("other.test.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
	{"answer", question("other.test.", dns.TypeA, func(m *dns.Msg) { m.Response = true }), -1},
}

const asking = `
import dgram from 'node:dgram';
import net from 'node:net';
import fs from 'node:fs';
const got = {};
const sentinel = Buffer.from('ffff01000001000000000000096c6f63616c686f73740000010001', 'hex'); // a look-up of localhost
for (const { name, text, silent } of JSON.parse(fs.readFileSync(0))) {
	const question = Buffer.from(text, 'base64');
	got[name + ' udp'] = await new Promise(done => {
		const s = dgram.createSocket('udp4');
		let reply = '';
		s.on('message', m => { if (m.readUInt16BE(0) !== 0xffff) reply = m.toString('base64'); if (reply) s.close(); else if (silent) setTimeout(() => s.close(), 100); });
		s.on('close', () => done(reply));
		s.send(question, 53, '10.0.2.3', () => s.send(sentinel, 53, '10.0.2.3'));
	});
	got[name + ' tcp'] = await new Promise(done => {
		const frame = b => Buffer.concat([Buffer.from([b.length >> 8, b.length & 255]), b]);
		const s = net.connect(53, '10.0.2.3', () => s.end(frame(question)));
		let all = Buffer.alloc(0);
		s.on('data', part => { all = Buffer.concat([all, part]); }).on('error', () => {}).on('close', () => done(all.subarray(2).toString('base64')));
	});
}
__return(got);`

// The resolver answers by the rules. The host's resolver gets no question that they deny.
func TestQuestions(t *testing.T) {
	in := serveInternet(t)
	var list []map[string]any
	for _, q := range questions {
		q.m.Id = 1
		b, err := q.m.Pack()
		if err != nil {
			t.Fatal(q.name, err)
		}
		list = append(list, map[string]any{"name": q.name, "text": base64.StdEncoding.EncodeToString(b), "silent": q.rcode < 0})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, _ := attemptsWith(t, rt, asking, runtime.RunOptions{Stdin: bytes.NewReader(text)})
		for _, q := range questions {
			for _, network := range []string{" udp", " tcp"} {
				b, err := base64.StdEncoding.DecodeString(got[q.name+network])
				if err != nil || len(b) == 0 {
					if q.rcode >= 0 {
						t.Errorf("%s%s: no reply, %v", q.name, network, err)
					}
					continue
				}
				reply := new(dns.Msg)
				if err := reply.Unpack(b); err != nil || reply.Rcode != q.rcode {
					t.Errorf("%s%s: %v, %v", q.name, network, reply, err)
				}
			}
		}
	})
	for _, name := range []string{"other.test", "data.other.test", "data.api.example.com", "example.com", "version.bind", "127.1", "93.184.215.14"} {
		if n := in.Asked(name); n != 0 {
			t.Errorf("%d questions about %s left the sandbox", n, name)
		}
	}
}
