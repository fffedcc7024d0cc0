package sqlite

// InUse reports whether a call runs.
func (s *Store) InUse() bool {
	free := s.db.open.TryLock()
	if free {
		s.db.open.Unlock()
	}
	return !free
}
