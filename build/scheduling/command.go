// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"kube-scheduler-fork/build/nextstep"
)

// options are shared by all commands.
type options struct {
	genericclioptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	lease  string
	output string
}

// NewCommand returns the plugin's root command.
func NewCommand(version string, streams genericclioptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{
		Use:         "kubectl-scheduling",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl scheduling"},
		Short:       "Show why the scheduler placed a pod on its node, or why the pod is pending",
		Long: `Shows why the scheduler placed a pod on its node, or why the pod is pending. The leading scheduler is found by its
lease, and reached through the API server with your own credentials.

  kubectl scheduling why web-0
  kubectl scheduling nodes web-0
  kubectl scheduling what-if -f pod.yaml
  kubectl scheduling queue
  kubectl scheduling load
  kubectl scheduling page
  kubectl scheduling snapshot > cluster.yaml
  kubectl scheduling history --follow --output now.jsonl
  kubectl scheduling simulate fit --snapshot cluster.yaml --pod web.yaml

The flags of kubectl that "kubectl options" lists are accepted, too.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// kubectl completes the arguments of a plugin with kubectl_complete-scheduling: docs/why.md.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	o.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = !slices.Contains([]string{"context", "kubeconfig", "namespace"}, flag.Name)
	})
	root.PersistentFlags().StringVar(&o.lease, "lease", schedulersLease.String(), "the scheduler's lease, as NAMESPACE/NAME: that of a second scheduler is kube-system/second-scheduler")
	root.AddCommand(o.whyCommand(), o.nodesCommand(), o.whatIfCommand(), o.queueCommand(), o.loadCommand(), o.pageCommand(),
		o.snapshotCommand(), o.historyCommand(version), o.simulateCommand())
	return root
}

// open reads the kubeconfig. It does not look for the scheduler yet.
func (o *options) open() (*scheduler, error) {
	lease, err := parseLease(o.lease)
	if err != nil {
		return nil, err
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	return newScheduler(config, lease, o.ErrOut)
}

// outputs are the values of --output. Without one, a table is printed.
var outputs = []string{"", "wide", "json", "yaml", "html"}

// answer sends the request, decodes the answer into a pointer, and prints it; table prints it as a table.
func (o *options) answer(ctx context.Context, request request, answer any, table func(printer)) error {
	if !slices.Contains(outputs, o.output) {
		return nextstep.With(fmt.Errorf("--output %s is unknown", o.output), "the same command with --output wide, json, yaml or html")
	}
	if o.output == "html" && newAnswer(request.path) == nil {
		return nextstep.With(errors.New("this answer has no HTML page"), "the same command with --output wide, json or yaml")
	}
	scheduler, err := o.open()
	if err != nil {
		return err
	}
	defer scheduler.close()
	content, err := scheduler.ask(ctx, request)
	if err != nil {
		return err
	}
	if o.output == "json" || o.output == "yaml" {
		printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(o.output)
		if err != nil {
			return err
		}
		return printer.PrintObj(&runtime.Unknown{Raw: bytes.TrimSpace(content)}, Escaped{o.Out})
	}
	if err := decode(content, answer); err != nil {
		return err
	}
	if o.output == "html" {
		if q, ok := answer.(*queue); ok {
			q.only(*o.flags.Namespace)
		}
		return view{Now: time.Now(), Content: answer}.render(o.Out)
	}
	table(printer{o.Out, o.output == "wide", time.Now()})
	return nil
}

func (o *options) addOutput(command *cobra.Command) {
	command.Flags().StringVarP(&o.output, "output", "o", "", "wide, json, yaml or html")
}

// completePods completes the name of a pod.
func (o *options) completePods(command *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, _, err := o.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	client, err := o.pods(namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	pods, err := client.List(command.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.GetName())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// pods returns a client for the pods of a namespace.
func (o *options) pods(namespace string) (dynamic.ResourceInterface, error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace), nil
}

// podName parses an argument NAME or pod/NAME.
func (o *options) podName(argument string) (namespace, name string, err error) {
	for _, prefix := range []string{"pod/", "pods/", "po/"} {
		argument = strings.TrimPrefix(argument, prefix)
	}
	if argument == "" || strings.Contains(argument, "/") {
		return "", "", nextstep.With(fmt.Errorf("%q is not the name of a pod", argument), "kubectl scheduling why NAME --namespace NAMESPACE")
	}
	namespace, _, err = o.namespace()
	return namespace, argument, err
}

// namespace returns the namespace of --namespace (explicit is true then), or else of the kubeconfig.
func (o *options) namespace() (namespace string, explicit bool, err error) {
	namespace, explicit, err = o.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, explicit, kubeconfigError(err)
}

func kubeconfigError(err error) error {
	if err == nil {
		return nil
	}
	return nextstep.With(err, "kubectl config view, or name a file with --kubeconfig")
}

func (o *options) whyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "why POD",
		Short: "Show the records of the last attempts to schedule a pod",
		Example: `  kubectl scheduling why web-0
  kubectl scheduling why web-0 --namespace shop --output wide`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completePods,
		RunE: func(command *cobra.Command, arguments []string) error {
			namespace, name, err := o.podName(arguments[0])
			if err != nil {
				return err
			}
			var answer podRecord
			return o.answer(command.Context(), request{path: podsPath + "/" + namespace + "/" + name}, &answer, func(p printer) { p.pod(answer) })
		},
	}
	o.addOutput(command)
	return command
}

func (o *options) nodesCommand() *cobra.Command {
	return o.dryRunCommand(&cobra.Command{
		Use:   "nodes (POD | -f FILE)",
		Short: "Show the score of each node for a pending pod or a manifest, or why the pod does not fit there (dry run)",
		Example: `  kubectl scheduling nodes web-0
  kubectl scheduling nodes -f pod.yaml --output wide`,
	}, url.Values{"nodes": {"all"}}, printer.nodes)
}

func (o *options) whatIfCommand() *cobra.Command {
	return o.dryRunCommand(&cobra.Command{
		Use:   "what-if (POD | -f FILE)",
		Short: "Dry-run scheduling for a pending pod, a manifest, or the gang of either; nothing is bound or evicted",
		Example: `  kubectl scheduling what-if web-0
  kubectl scheduling what-if -f pod.yaml
  kubectl scheduling what-if -f gang.yaml`,
	}, url.Values{}, printer.whatIf)
}

// dryRunCommand completes a command that asks for a dry run with parameters, and prints it.
func (o *options) dryRunCommand(command *cobra.Command, parameters url.Values, print func(printer, whatIf)) *cobra.Command {
	var files []string
	command.Args, command.ValidArgsFunction = cobra.MaximumNArgs(1), o.completePods
	command.RunE = func(command *cobra.Command, arguments []string) error {
		asked, err := o.whatIf(command.Context(), arguments, files, parameters)
		if err != nil {
			return err
		}
		var answer whatIf
		return o.answer(command.Context(), asked, &answer, func(p printer) {
			o.blockers(command.Context(), asked, &answer)
			print(p, answer)
		})
	}
	addFiles(command, &files)
	o.addOutput(command)
	return command
}

func addFiles(command *cobra.Command, files *[]string) {
	command.Flags().StringSliceVarP(files, "filename", "f", nil, "the manifest of a pod or of a gang, or - for standard input")
}

// whatIf builds the request for a pending pod or for a manifest, with parameters.
func (o *options) whatIf(ctx context.Context, arguments, files []string, parameters url.Values) (request, error) {
	asked := request{path: whatIfPath, query: parameters}
	switch {
	case len(arguments)+len(files) != 1:
		return asked, nextstep.With(errors.New("expected one pod: the name of a pending pod, or a file"),
			"kubectl scheduling what-if NAME, or kubectl scheduling what-if -f pod.yaml")
	case len(arguments) == 1:
		namespace, name, err := o.podName(arguments[0])
		asked.query.Set("pod", namespace+"/"+name)
		return asked, err
	}
	var err error
	asked.body, err = o.manifest(ctx, files[0])
	return asked, err
}

func (o *options) queueCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "queue",
		Short: "List the pending pods of all namespaces, or of --namespace, with the part of the scheduling queue that they are in",
		Example: `  kubectl scheduling queue
  kubectl scheduling queue --namespace shop`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var answer queue
			return o.answer(command.Context(), request{path: queuePath}, &answer, func(p printer) { p.queue(answer, *o.flags.Namespace) })
		},
	}
	o.addOutput(command)
	return command
}
