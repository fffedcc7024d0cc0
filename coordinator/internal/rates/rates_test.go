package rates_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/grapnel-go/grapnel/coordinator/internal/rates"
)

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rates.New(2, 3)
		count := func(client string) (n int) {
			for range 10 {
				if l.Allow(client) {
					n++
				}
			}
			return n
		}
		assert.Equal(t, 3, count("a"))
		assert.Equal(t, 3, count("b"), "each client has a limit of its own")
		time.Sleep(time.Second)
		assert.Equal(t, 2, count("a"))
		for i := range 20_000 {
			l.Allow(fmt.Sprint(i))
		}
		assert.Zero(t, count("one more"), "so many clients share a limit")
		time.Sleep(time.Minute)
		assert.Equal(t, 3, count("one more"), "idle clients are forgotten")
		none := rates.New(0, 0)
		for range 100 {
			assert.True(t, none.Allow("a"))
		}
	})
}

func TestAddressOf(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "@": "@",
	} {
		assert.Equal(t, want, rates.AddressOf(&http.Request{RemoteAddr: from}), from)
	}
}
