package sqlite

// InUse reports whether a write waits or runs.
func (s *Store) InUse() bool {
	s.db.queue.mu.Lock()
	defer s.db.queue.mu.Unlock()
	return len(s.db.turn) > 0 || len(s.db.queue.waiting) > 0
}
