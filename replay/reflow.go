package replay

func (t *Terminal) Resize(cols, rows int) {}
