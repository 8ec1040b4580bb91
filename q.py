import json,subprocess,sys
E='/tmp/w/tune/target/debug/earmark'
def tune(wl,*a):
    out=subprocess.run([E,'tune','both','--world','virtual','--workload',wl,'--duration','0.1','--warmup','0.02','--max-usecs','256','--json',*a],capture_output=True,text=True)
    if out.returncode: print(out.stderr); sys.exit(1)
    return json.loads(out.stdout)
for wl in ['loaded-server','tcp-rr','mixed']:
    t=tune(wl,'--goal','min interrupts','--exhaustive','1')
    tab={r['setting']:r['figures'] for r in t['trials']}
    def mid(m):
        v=sorted(f[m] for f in tab.values()); return 1.02*v[len(v)//2]
    for aim,lim in [('p50',None),('interrupts',('p99',mid('p99'))),('p50',('interrupts',mid('interrupts')))]:
        g='min '+aim+('' if not lim else f", {lim[0]} < {lim[1]:.1f}"+('us' if lim[0]=='p99' else ''))
        def cost(f): return (0 if not lim else max(0,f[lim[0]]/lim[1]-1), f[aim])
        best=min(tab,key=lambda s:cost(tab[s]))
        o=tune(wl,'--goal',g)
        pick=o['trials'][o['pick']]['setting']
        c,b=cost(tab[pick]),cost(tab[best])
        print(wl,g,'settings',len(tab),'best',best,b,'pick',pick,c,'trials',len(o['trials']),'dist %.3f'%max(c[1]/b[1]-1,c[0]-b[0]),flush=True)
        if max(c[1]/b[1]-1,c[0]-b[0])>.05:
            for s in sorted(tab,key=lambda s:cost(tab[s]))[:6]: print('    ',s,cost(tab[s]),tab[s]['p99'],tab[s]['interrupts'])
            print('    tried',[(r['setting'],round(r['figures'][aim],1)) for r in o['trials']])
