package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gaol/cmd/gaol/server/quota"
)

// Large bodies of a tenant, and those of unknown size, wait for their turn before they are read. Small ones and those of
// other tenants do not.
func TestReadBodyTurns(t *testing.T) {
	small, large := `"a"`, `"`+strings.Repeat("a", quota.LargeText)+`"`
	for _, tc := range []struct {
		name, tenant, body string
		size               int64
		waits              bool
	}{
		{"small", "mallory", small, int64(len(small)), false},
		{"large", "mallory", large, int64(len(large)), true},
		{"of unknown size", "mallory", small, -1, true},
		{"large, of another tenant", "alice", large, int64(len(large)), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, tenant := quota.DefaultLimits(1<<30, 1024)
				s := quota.NewServer(server, tenant, nil)
				for range max(1, goruntime.NumCPU()/4) {
					if _, err := s.Account("mallory").Wait(t.Context(), quota.Texts); err != nil {
						t.Fatal(err)
					}
				}
				account := s.Account(tc.tenant)
				held, err := account.Reserve(quota.Limits{Concurrent: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer held.Release()
				began, read := time.Now(), time.Duration(-1)
				r := httptest.NewRequest(http.MethodPost, "/v1/run", io.TeeReader(strings.NewReader(tc.body), writerFunc(func() {
					if read < 0 {
						read = time.Since(began)
					}
				})))
				r.ContentLength = tc.size
				body, err := ReadBody(httptest.NewRecorder(), r.WithContext(WithQuota(t.Context(), account, held)), MaxBody)
				if err != nil || string(body) != tc.body || read < 0 || (read > 0) != tc.waits {
					t.Errorf("%d bytes, read after %v, %v", len(body), read, err)
				}
			})
		})
	}
}

// writerFunc is called with each write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }
