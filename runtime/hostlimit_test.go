package runtime

import (
	"errors"
	"testing"
)

// unlimited is RLIM_INFINITY.
const unlimited = 1<<64 - 1

func TestLimitsFitHost(t *testing.T) {
	for _, tc := range []struct {
		hard    uint64
		asked   int64
		want    int64
		refused bool
	}{
		{4096, 0, 1024, false},
		{unlimited, 0, 1024, false},
		{1024, 0, 1024, false},
		{512, 0, 512, false},
		{512, 512, 512, false},
		{512, 100, 100, false},
		{512, 513, 0, true},
		{512, 1024, 0, true},
		{minOpenFiles, 0, minOpenFiles, false},
		{minOpenFiles - 1, 0, 0, true},
	} {
		asked := Limits{OpenFiles: tc.asked}
		l := asked
		err := errors.Join(fill(&l, true), l.fit(asked, tc.hard))
		failed, refused := errors.AsType[*LimitError](err)
		if refused != tc.refused || !refused && (err != nil || l.OpenFiles != tc.want) {
			t.Errorf("hard limit %d, requested %d: %d, %v", tc.hard, tc.asked, l.OpenFiles, err)
		}
		if refused && failed.Most != float64(tc.hard) {
			t.Errorf("hard limit %d: %+v", tc.hard, failed)
		}
	}
}
