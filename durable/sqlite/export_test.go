package sqlite

// InUse reports whether a write waits or runs.
func (s *Store) InUse() bool {
	s.db.queue.mu.Lock()
	defer s.db.queue.mu.Unlock()
	return s.db.queue.leader != nil
}
