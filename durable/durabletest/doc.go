// Package durabletest tests the contract of a durable.Store: the comments on that interface, sentence by sentence.
//
//	func TestStore(t *testing.T) {
//		durabletest.TestStore(t, func(t *testing.T) durable.Store {
//			store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
//			require.NoError(t, err)
//			return store
//		})
//	}
//
// TestRandom makes random calls, and checks after each that the store has changed what a table of transitions allows. For a
// store whose data survives a restart or is shared by several processes, run TestShared as well. TestScheduler tests a
// durable.Scheduler.
//
// # Rules
//
// Open must return an empty store each time; the tests close it. The tests hardly wait for time to pass: expired leases
// are created with a ttl of a nanosecond, and deadlines lie in the past or a century ahead. They wait for up to thirty
// seconds for what must happen, and do not test how soon it happens. Times passed to the store are whole microseconds,
// and the store may return them in any time zone. Texts are valid UTF-8 without zero bytes; data may be any bytes. Run
// the tests with the race detector, because some of them make concurrent calls.
package durabletest
