// Package durabletest tests the contract of a durable.Store: every sentence of the
// comments on that interface is a subtest here.
//
//	func TestStore(t *testing.T) {
//		durabletest.TestStore(t, func(t *testing.T) durable.Store {
//			store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Options{})
//			require.NoError(t, err)
//			return store
//		})
//	}
//
// A store whose data outlives it, or is shared by several processes, is held to
// that by TestShared as well.
//
// # Rules
//
// Open gives an empty store each time; the tests close it. Nothing waits for a
// clock: leases that must have run out are given a nanosecond. Times that go in
// are whole microseconds, and may come out in any time zone. Texts are valid
// UTF-8 without zero bytes; data is any bytes. Run the tests with the race
// detector, too: some of them ask many things at once.
package durabletest
