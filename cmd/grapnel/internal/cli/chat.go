package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newChat(std streams) *cobra.Command {
	_ = context.Background
	return &cobra.Command{Use: "chat"}
}
