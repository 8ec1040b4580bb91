/* Nothing but the header: whatever it lacks is missed here. */
#include "earmark_mx.h"

int main(void)
{
    return earmark_mx_api() == EARMARK_MX_API ? 0 : 1;
}
