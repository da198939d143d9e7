// SPDX-License-Identifier: Apache-2.0
// Command kube is one binary with etcd and the Kubernetes components in it. It
// dispatches on the name that it was called by (a symlink), or else on its
// first argument, so that a build links once.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "time/tzdata" // the time zones of CronJobs

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Commands by name; other files of this package add some in their init.
var commands = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(kcm.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl": func() int {
		logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) //nolint:errcheck
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return 0
	},
}

func main() {
	if f, ok := commands[filepath.Base(os.Args[0])]; ok {
		os.Exit(f())
	}
	if len(os.Args) > 1 {
		if f, ok := commands[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(f())
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(commands)), "\n")
	if len(os.Args) == 2 && os.Args[1] == "names" {
		fmt.Println(names)
		return
	}
	fmt.Fprintln(os.Stderr, "usage: kube COMMAND [flags], or a symlink named COMMAND. COMMAND is one of\n"+names)
	os.Exit(2)
}
