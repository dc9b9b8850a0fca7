package egress

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// However many questions a guest sends, and whatever about, the host answers a limited number.
func TestFloodOfQuestions(t *testing.T) {
	newWorld(t, byName, Limits{})
	c, err := net.Dial("udp", "127.0.0.53:53")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	question, err := new(dns.Msg).SetQuestion("localhost.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	start, first, replies := time.Now(), make(chan struct{}), make(chan int)
	begin := sync.OnceFunc(func() { close(first) })
	go func() {
		n := 0
		for b := make([]byte, 512); ; n++ {
			if _, err := c.Read(b); err != nil {
				replies <- n
				return
			}
			begin()
		}
	}()
	for range 60_000 {
		_, _ = c.Write(question)
	}
	<-first                           // on a busy machine
	_ = c.SetReadDeadline(time.Now()) // replies that are late are not counted
	n, seconds := <-replies, time.Since(start).Seconds()
	if most := messagesPerSec * (1 + seconds); n == 0 || float64(n) > most {
		t.Errorf("%d replies in %.1f s", n, seconds)
	}
	for { // as a resolver does: the kernel may have dropped some
		if _, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion("localhost.", dns.TypeA), "127.0.0.53:53"); err == nil {
			break
		}
	}
}
