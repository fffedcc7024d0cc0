package sqlite

// InUse returns how many connections of the writer work.
func (s *Store) InUse() int { return s.writer.Stats().InUse }
