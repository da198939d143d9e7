// SPDX-License-Identifier: Apache-2.0
package main

import (
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// kwok simulates nodes and the life of their pods.
func init() {
	commands["kwok"] = func() int {
		// Without the global flags of other components: their --version is no bool.
		pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
		flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
		flags.ParseErrorsAllowlist.UnknownFlags = true
		flags.Usage = func() {}
		ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
		ctx, err := config.InitFlags(ctx, flags)
		if err != nil {
			logger.Error("flags", "err", err)
			return 1
		}
		cmd := kwok.NewCommand(ctx)
		cmd.PersistentFlags().AddFlagSet(flags)
		if err := cmd.ExecuteContext(ctx); err != nil {
			logger.Error("kwok", "err", err)
			return 1
		}
		return 0
	}
}
