// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"

	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// The programs that a real node needs.
func init() {
	commands["kubelet"] = func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) }
	commands["kube-proxy"] = func() int { return cli.Run(proxy.NewProxyCommand()) }
}
