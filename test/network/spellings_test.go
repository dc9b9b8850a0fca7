package network

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// A spelling is the URL of a host, as a program may write it.
type spelling struct {
	url    string
	byName string // the result under apiOnly: served, or an error
	wide   string // the result under "allow"
}

// spellings are read as Node reads URLs. A host that is not on the public internet is
// refused in every form.
var spellings = []spelling{
	{"http://api.example.com/", "served", "served"},
	{"http://API.Example.COM/", "served", "served"},
	{"http://api.example.com./", "served", "served"},
	{"http://api.example.com:080/", "served", "served"},
	{"http:\\\\api.example.com\\", "served", "served"},
	{"http:/api.example.com/", "served", "served"},
	{"http:api.example.com", "served", "served"},
	{" \thttp://api.exa\tmple.\ncom/", "served", "served"},
	{"http://%61pi.example.com/", "served", "served"},
	{"http://api%2eexample%2ecom/", "served", "served"},
	{"http://ａｐｉ．ｅｘａｍｐｌｅ．ｃｏｍ/", "served", "served"},
	{"http://ⓐⓟⓘ。example。com/", "served", "served"},
	{"http://a\u00adpi.example.com/", "served", "served"},
	{"http://10.1.2.3@api.example.com/", "served", "served"},
	{"http://api.example.com\\@10.1.2.3/", "served", "served"},
	{"http://api.example.com#@10.1.2.3/", "served", "served"},
	{"http://api.example.com?@10.1.2.3/", "served", "served"},

	{"http://www.example.com/", "EAI_AGAIN", "served"},
	{"http://other.test/", "EAI_AGAIN", "served"},
	{"http://other.test./", "EAI_AGAIN", "served"},
	{"http://bücher.test/", "EAI_AGAIN", "served"},
	{"http://xn--bcher-kva.test/", "EAI_AGAIN", "served"},
	{"http://BU\u0308CHER.test/", "EAI_AGAIN", "served"},
	{"http://api.example.com@other.test/", "EAI_AGAIN", "served"},
	{"http://api.example.com:80@other.test/", "EAI_AGAIN", "served"},
	{"http://other.test\\@api.example.com/", "EAI_AGAIN", "served"},
	{"http://other.test?api.example.com/", "EAI_AGAIN", "served"},
	{"http://example.com/", "EAI_AGAIN", "ENOTFOUND"},
	{"http://xapi.example.com/", "EAI_AGAIN", "ENOTFOUND"},
	{"http://a.api.example.com/", "EAI_AGAIN", "ENOTFOUND"},
	{"http://api.example.com.evil.test/", "EAI_AGAIN", "ENOTFOUND"},
	{"http://api.example.com%2eevil.test/", "EAI_AGAIN", "ENOTFOUND"},
	{"http://api\u0430.example.com/", "EAI_AGAIN", "ENOTFOUND"}, // a Cyrillic letter
	{"http://api.example.com../", "ENOTFOUND", "ENOTFOUND"},
	{"http://api..example.com/", "ENOTFOUND", "ENOTFOUND"},
	{"http://api.example.com:81/", "refused", "refused"},

	{"http://93.184.215.14/", "refused", "served"},
	{"http://93.184.215.14./", "refused", "served"},
	{"http://0x5db8d70e/", "refused", "served"},
	{"http://1572394766/", "refused", "served"},
	{"http://0135.0270.0327.016/", "refused", "served"},
	{"http://93.12113678/", "refused", "served"},
	{"http://0X5D.0XB8.0XD7.0XE/", "refused", "served"},
	{"http://９３.184.215.14/", "refused", "served"},
	{"http://[::ffff:93.184.215.14]/", "refused", "served"},
	{"http://[2606:2800:220:1::14]/", "refused", "served"},
	{"http://[2606:2800:0220:0001:0000:0000:0000:0014]/", "refused", "served"},

	{"http://private.test/", "refused", "refused"},
	{"http://PRIVATE.test/", "refused", "refused"},
	{"http://private.test./", "refused", "refused"},
	{"http://metadata.test/", "refused", "refused"},
	{"http://loopback.test/", "refused", "refused"},
	{"http://nat64.test/", "refused", "refused"},
	{"http://mapped.test/", "refused", "refused"},
	{"http://10.1.2.3/", "refused", "refused"},
	{"http://10.1.2.3./", "refused", "refused"},
	{"http://10.66051/", "refused", "refused"},
	{"http://10.1.515/", "refused", "refused"},
	{"http://0xa.1.2.3/", "refused", "refused"},
	{"http://012.1.2.3/", "refused", "refused"},
	{"http://0000000012.01.02.03/", "refused", "refused"},
	{"http://167838211/", "refused", "refused"},
	{"http://0xa010203/", "refused", "refused"},
	{"http://01200401003/", "refused", "refused"},
	{"http://1%30.1.2.3/", "refused", "refused"},
	{"http://①⓪.1.2.3/", "refused", "refused"},
	{"http://１０．１．２．３/", "refused", "refused"},
	{"http://10。1。2。3/", "refused", "refused"},
	{"http://10.1.\n2.3/", "refused", "refused"},
	{"http:\\\\10.1.2.3/", "refused", "refused"},
	{"http:10.1.2.3", "refused", "refused"},
	{"http://api.example.com@10.1.2.3/", "refused", "refused"},
	{"http://api.example.com:80@10.1.2.3:80/", "refused", "refused"},
	{"http://10.1.2.3\\@api.example.com/", "refused", "refused"},
	{"http://10.1.2.3#@api.example.com/", "refused", "refused"},
	{"http://10.1.2.3?@api.example.com/", "refused", "refused"},
	{"http://a@b@10.1.2.3/", "refused", "refused"},
	{"http://[::ffff:10.1.2.3]/", "refused", "refused"},
	{"http://[::ffff:a01:203]/", "refused", "refused"},
	{"http://[0:0:0:0:0:FFFF:10.1.2.3]/", "refused", "refused"},
	{"http://169.254.169.254/latest/meta-data/", "refused", "refused"},
	{"http://0xa9fea9fe/", "refused", "refused"},
	{"http://2852039166/", "refused", "refused"},
	{"http://169.254.43518/", "refused", "refused"},
	{"http://0251.0376.0251.0376/", "refused", "refused"},
	{"http://169。254。169。254/", "refused", "refused"},
	{"http://[::ffff:169.254.169.254]/", "refused", "refused"},
	{"http://[fd00:ec2::254]/", "refused", "refused"},
	{"http://192.0.2.53:53/", "refused", "refused"}, // the tests' name server

	{"http://0/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://0.0.0.0/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://127.1/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://2130706433/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://0x7f000001/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://017700000001/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://127.255.255.254/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://[::1]/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://[::]/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://[::ffff:127.0.0.1]/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://[::ffff:0:0]/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://localhost/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://LOCALHOST./", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://a.localhost/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://①②⑦.1/", "ECONNREFUSED", "ECONNREFUSED"},
	{"http://10.0.2.3/", "ECONNREFUSED", "ECONNREFUSED"}, // the resolver

	{"http://[fe80::1%25lo]/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://[::1%25]/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://10.1.2.3.4/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://256.1.2.3/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://4294967296/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://0x100000000/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://08.1.2.3/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://api.example.com:65616/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://api.example.com%00.other.test/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://api.example.com%20.other.test/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
	{"http://api.example.com%2f@other.test/", "EAI_AGAIN", "served"},
	{"http://[api.example.com]/", "ERR_INVALID_URL", "ERR_INVALID_URL"},
}

// visiting gets each URL in a list of its argument.
const visiting = `
import http from 'node:http';
const got = [];
for (const text of JSON.parse(process.argv[2])) {
	got.push(await new Promise(done => {
		try {
			http.get(new URL(text), { agent: false }, async res => {
				let all = '';
				for await (const part of res) all += part;
				done(all);
			}).on('error', err => done(err.errors?.[0].code ?? err.code));
		} catch (err) {
			done(err.code);
		}
	}));
}
__return(got);`

func TestSpellings(t *testing.T) {
	in := serveInternet(t)
	var urls []string
	for _, s := range spellings {
		urls = append(urls, s.url)
	}
	list, err := json.Marshal(urls)
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{apiOnly, `"allow"`} {
		eachLauncher(t, network, func(t *testing.T, rt *runtime.NodeRuntime) {
			in.forget()
			res := harness.Run(t, rt, visiting, runtime.RunOptions{Args: []string{string(list)}})
			var got []string
			if err := json.Unmarshal(res.Value, &got); err != nil || len(got) != len(spellings) {
				t.Fatalf("%d results, %v, %s", len(got), err, res.Stderr)
			}
			for i, s := range spellings {
				want := s.byName
				if network != apiOnly {
					want = s.wide
				}
				if !isResult(got[i], want) {
					t.Errorf("%q: %q, want %s", s.url, got[i], want)
				}
			}
			in.checkReached(t, publicV4, publicV6, otherV4)
		})
	}
	if n := in.Asked("localhost") + in.Asked("a.localhost"); n != 0 {
		t.Errorf("%d questions about localhost left the sandbox", n)
	}
}

// specialV4 are addresses of every prefix that is not on the public internet, with the
// result of a connect.
var specialV4 = []string{
	"0.1.2.3", "10.1.2.3", "10.0.2.2", "10.0.2.15", "100.64.0.1", "100.127.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.254", "192.0.0.1", "192.0.0.170", "192.0.2.1",
	"192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.99", "198.19.255.254", "198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.254",
}

var specialV6 = []string{
	"::2", "100::1", "200::1", "400::1", "2001::1", "2001:1::1", "2001:2::99", "2001:2:0:1::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002::1", "2620:4f:8000::1", "3fff::1",
	"4000::1", "5f00::1", "8000::1", "fc00::1", "fd00:ec2::254", "fd00::2:15", "fe80::1%lo", "febf::1%lo", "fec0::1",
}

// embeddings are IPv6 addresses that contain an IPv4 address.
var embeddings = []func(a [4]byte) string{
	func(a [4]byte) string { return fmt.Sprintf("::ffff:%d.%d.%d.%d", a[0], a[1], a[2], a[3]) },        // v4-mapped
	func(a [4]byte) string { return fmt.Sprintf("::%x:%x", pair(a, 0), pair(a, 2)) },                   // v4-compatible
	func(a [4]byte) string { return fmt.Sprintf("::ffff:0:%x:%x", pair(a, 0), pair(a, 2)) },            // v4-translated
	func(a [4]byte) string { return fmt.Sprintf("64:ff9b::%x:%x", pair(a, 0), pair(a, 2)) },            // NAT64
	func(a [4]byte) string { return fmt.Sprintf("64:ff9b:1::%x:%x", pair(a, 0), pair(a, 2)) },          // NAT64 within a site
	func(a [4]byte) string { return fmt.Sprintf("2002:%x:%x::1", pair(a, 0), pair(a, 2)) },             // 6to4
	func(a [4]byte) string { return fmt.Sprintf("2001:0:%x:%x::1", pair(a, 0), pair(a, 2)) },           // Teredo, the server
	func(a [4]byte) string { return fmt.Sprintf("2001::%x:%x", 0xffff^pair(a, 0), 0xffff^pair(a, 2)) }, // Teredo, the client
	func(a [4]byte) string { return fmt.Sprintf("fe80::5efe:%x:%x%%lo", pair(a, 0), pair(a, 2)) },      // ISATAP
	func(a [4]byte) string { return fmt.Sprintf("fd00::%d:%d:%d:%d", a[0], a[1], a[2], a[3]) },         // unique local
	func(a [4]byte) string { return fmt.Sprintf("64:ff9b:1:%x:%x::", pair(a, 0), uint16(pair(a, 2))) }, // NAT64 with a longer prefix
}

func pair(a [4]byte, i int) int { return int(a[i])<<8 | int(a[i+1]) }

// specials returns all special addresses, with the result of a connect to them.
func specials() map[string]string {
	want := map[string]string{
		"127.0.0.1": "ECONNREFUSED", "127.9.9.9": "ECONNREFUSED", "0.0.0.0": "ECONNREFUSED", "::1": "ECONNREFUSED", "::": "ECONNREFUSED", "::ffff:127.0.0.1": "ECONNREFUSED",
		"10.0.2.3": "ECONNREFUSED", "::ffff:10.0.2.3": "ECONNREFUSED",
		"224.0.0.1": "ENETUNREACH", "239.255.255.250": "ENETUNREACH", "255.255.255.255": "ENETUNREACH", "ff02::1%lo": "ENETUNREACH", "ff0e::1": "ENETUNREACH",
		"fe80::1": "EINVAL",
	}
	for _, text := range append(specialV6, specialV4...) {
		want[text] = "refused"
	}
	for _, text := range append(specialV4, "127.0.0.1", "93.184.215.14") {
		for i, embed := range embeddings {
			if text := embed(netip.MustParseAddr(text).As4()); i > 0 {
				want[text] = "refused"
			} else if want[text] == "" && text != "::ffff:93.184.215.14" {
				want[text] = "refused"
			}
		}
	}
	return want
}

const connecting = `
import net from 'node:net';
const got = {};
for (const host of JSON.parse(process.argv[2])) {
	got[host] = await new Promise(done => {
		const s = net.connect(80, host);
		s.on('connect', () => s.write('GET / HTTP/1.0\r\n\r\n'));
		s.on('data', () => done('served')).on('error', err => done(err.code)).on('close', () => done('closed'));
	});
}
__return(got);`

// Under "allow" special addresses are refused in every spelling, to Node and to a static program.
func TestSpecialAddresses(t *testing.T) {
	in := serveInternet(t)
	want := specials()
	if harness.InGVisor() { // where nothing answers a connect to these
		maps.DeleteFunc(want, func(_, result string) bool { return result == "ENETUNREACH" || result == "EINVAL" })
	}
	var hosts, args []string
	for host := range want {
		hosts = append(hosts, host)
		args = append(args, host, "80")
	}
	list, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		in.forget()
		before := dials(t)
		got, _ := attempts(t, rt, connecting, string(list))
		check(t, got, want)
		lines := strings.Split(harness.Output(t, rt, runtime.RunOptions{}, harness.Install(t, rt, "connect"), args...), "\n")
		if len(lines) != len(hosts) {
			t.Fatalf("%d lines for %d addresses", len(lines), len(hosts))
		}
		for i, host := range hosts {
			if !isResult(lines[i], want[host]) {
				t.Errorf("static program: %s: %q, want %s", host, lines[i], want[host])
			}
		}
		in.checkReached(t)
		if n := dials(t) - before; n != 0 {
			t.Errorf("the host has dialed %d times", n)
		}
	})
}
